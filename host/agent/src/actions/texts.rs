//! `load_skill` and `note_plan`: texts that the model reads in each round from then on.

use super::{Outcome, failed, told};
use crate::{driver::Driver, stop::Stop};
use belljar_types::{Record, ToolErrorKind};

impl Driver {
    pub(super) async fn load_skill(&mut self, name: &str) -> Result<Outcome, Stop> {
        if self.skills.iter().any(|skill| skill.name == name) {
            return Ok(told(format!("the skill `{name}` is loaded already")));
        }
        let Some(skills) = self.request.skills.clone() else {
            return Ok(failed(ToolErrorKind::Failed, "there are no skills"));
        };
        let loaded = self.ask_panic_safe(skills.load(name)).await?;
        let skill = match loaded.and_then(|loaded| loaded) {
            Ok(skill) => skill,
            Err(why) => return Ok(failed(ToolErrorKind::Failed, why)),
        };
        self.session.append(Record::SkillLoaded { name: name.to_owned() }).await?;
        self.skills.push(skill);
        Ok(told(format!(
            "the skill `{name}` is loaded: its text is in your instructions from now on"
        )))
    }

    pub(super) async fn note_plan(&mut self, plan: String) -> Result<Outcome, Stop> {
        self.session.append(Record::PlanNoted { text: plan.clone() }).await?;
        self.notes = Some(plan);
        Ok(told("noted"))
    }
}
