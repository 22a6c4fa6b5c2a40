//! From the guest's request to one that was decided about, before anything is resolved or sent.

use super::{exchange::Exchange, headers};
use belljar_capability::{
    GrantPart, Limit, NetDenial, NetRequest, Permit, SecretGrant, decide_request,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use wasmtime_wasi_http::{Error, WasiBody};

/// A request that may be sent once its addresses are checked.
pub(super) struct Prepared {
    pub(super) permit: Permit,
    pub(super) headers: HeaderMap,
    pub(super) body: WasiBody,
}

impl Exchange {
    /// Decides about a request. A refusal is recorded, and the guest gets no more than that it was
    /// refused.
    pub(super) fn prepare(&self, request: http::Request<WasiBody>) -> Result<Prepared, Error> {
        let (parts, body) = request.into_parts();
        let uri = &parts.uri;
        let read = NetRequest::new(
            parts.method.as_str(),
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map_or("", |authority| authority.as_str()),
            uri.path_and_query().map_or("", |path| path.as_str()),
        );
        let wanted = match read {
            Ok(request) => request,
            Err(error) => {
                let target = format!("{} {uri}", parts.method);
                return Err(self.refuse(&target, &error.to_string()));
            }
        };
        let permit = decide_request(&self.grants, self.world.network, &wanted)
            .map_err(|denial| self.refuse_by(denial))?;
        let asked = self.world.granted.net_asked.as_deref();
        if asked.is_some_and(|asked| !asked.iter().any(|grant| grant.covers(&wanted))) {
            let reason = "the plugin's manifest does not ask for it";
            return Err(self.refuse(&wanted.to_string(), reason));
        }
        if !self.take_request() {
            return Err(self.refuse_over(&wanted.to_string(), Limit::Requests));
        }
        let mut fields = parts.headers;
        if let Some(name) = headers::forbidden(&fields, permit.allows_any_method()) {
            let reason = format!("the header `{name}` is not the tool's to set");
            return Err(self.refuse(&wanted.to_string(), &reason));
        }
        if self.redactor.is_some() {
            headers::ask_for_plain(&mut fields);
        }
        for secret in self.world.granted.secrets.iter().filter(|secret| secret.goes_with(&wanted)) {
            self.add_secret(&mut fields, secret)
                .map_err(|reason| self.refuse(&wanted.to_string(), &reason))?;
        }
        Ok(Prepared { permit, headers: fields, body })
    }

    fn add_secret(&self, fields: &mut HeaderMap, secret: &SecretGrant) -> Result<(), String> {
        let (name, variable) = (secret.name(), secret.from_env());
        if fields.contains_key(secret.header()) {
            let header = secret.header();
            return Err(format!(
                "the header `{header}` carries the secret `{name}` and is not the tool's to set"
            ));
        }
        let value = self.secret_value(secret).ok_or_else(|| {
            format!("the secret `{name}` has no value: set the variable `{variable}`")
        })?;
        let value = secret.header_value(&value).map_err(|error| error.to_string())?;
        let no_header = |_| format!("the secret `{name}` cannot be a header");
        let value = HeaderValue::from_str(&value).map_err(|_| no_header(()))?;
        let header =
            HeaderName::from_bytes(secret.header().as_bytes()).map_err(|_| no_header(()))?;
        headers::add_secret(fields, header, value);
        Ok(())
    }

    /// Records what was refused, for people; the guest learns that it was.
    pub(super) fn refuse_by(&self, denial: NetDenial) -> Error {
        let NetDenial { target, reason, grant } = denial;
        let grant = grant.map(|grant| format!("{}.net={grant}", self.plugin));
        self.denials.note_with_grant("request", &target, &reason, grant);
        Error::HttpRequestDenied
    }

    /// The same where a limit is met.
    pub(super) fn refuse_over(&self, target: &str, limit: Limit) -> Error {
        let limits = self.limits();
        let raised = GrantPart::raised(limits, limit, None);
        let grant = raised.map(|raised| format!("{}.{raised}", self.plugin));
        self.denials.note_with_grant("request", target, &limits.met(limit, None), grant);
        Error::HttpRequestDenied
    }

    /// The same where no grant would help.
    pub(super) fn refuse(&self, target: &str, reason: &str) -> Error {
        self.denials.note("request", target, reason);
        Error::HttpRequestDenied
    }
}
