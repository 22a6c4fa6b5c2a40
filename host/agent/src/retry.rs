//! When and how often something that failed is tried again. Decides only: it never waits itself
//! and never knows what is retried.

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::time::Duration;

/// How often to try and how long to wait in between.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The delay before the second attempt; it doubles from then on.
    pub first_delay: Duration,
    pub longest_delay: Duration,
    pub jitter: Jitter,
    /// Where the other side asks for more than this, the failure is final at once.
    pub longest_wait_asked: Duration,
}

/// What is added to a delay so that many clients do not come back at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing.
    Off,
    /// Up to the delay itself.
    Random,
    /// Up to the delay itself, the same each time.
    Seeded(u64),
}

impl RetryPolicy {
    /// Five attempts, delays from half a second to half a minute, two minutes of patience.
    pub fn for_models() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            jitter: Jitter::Random,
            longest_wait_asked: Duration::from_secs(120),
        }
    }

    /// Three attempts, delays from 200 milliseconds to 5 seconds, half a minute of patience.
    pub fn for_tools() -> Self {
        Self {
            attempts: 3,
            first_delay: Duration::from_millis(200),
            longest_delay: Duration::from_secs(5),
            jitter: Jitter::Random,
            longest_wait_asked: Duration::from_secs(30),
        }
    }

    pub(crate) fn schedule(&self) -> Schedule {
        let builder = ExponentialBuilder::new()
            .with_min_delay(self.first_delay)
            .with_max_delay(self.longest_delay)
            .with_max_times(self.attempts.saturating_sub(1) as usize);
        let builder = match self.jitter {
            Jitter::Off => builder,
            Jitter::Random => builder.with_jitter(),
            Jitter::Seeded(seed) => builder.with_jitter().with_jitter_seed(seed),
        };
        Schedule {
            attempt: 1,
            delays: builder.build(),
            longest_wait_asked: self.longest_wait_asked,
        }
    }
}

/// The attempts at one thing.
#[derive(Debug)]
pub(crate) struct Schedule {
    attempt: u32,
    delays: ExponentialBackoff,
    longest_wait_asked: Duration,
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GaveUp {
    /// All attempts were made.
    AfterAttempts(u32),
    /// The other side asked for a wait that is too long.
    WaitTooLong { asked: Duration, longest: Duration },
}

impl Schedule {
    /// Books a failure: the next attempt's number, from 2, and the delay before it.
    pub(crate) fn failed(
        &mut self,
        retry_after: Option<Duration>,
    ) -> Result<(u32, Duration), GaveUp> {
        let least = retry_after.unwrap_or(Duration::ZERO);
        if least > self.longest_wait_asked {
            return Err(GaveUp::WaitTooLong { asked: least, longest: self.longest_wait_asked });
        }
        let delay = self.delays.next().ok_or(GaveUp::AfterAttempts(self.attempt))?;
        self.attempt += 1;
        Ok((self.attempt, delay.max(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(policy: &RetryPolicy, retry_after: Option<Duration>) -> Vec<Result<(u32, u64), GaveUp>> {
        let mut schedule = policy.schedule();
        (0..5)
            .map(|_| schedule.failed(retry_after).map(|(n, delay)| (n, delay.as_millis() as u64)))
            .collect()
    }

    #[test]
    fn delays_double_up_to_the_longest_until_the_attempts_are_used_up() {
        let policy = RetryPolicy {
            jitter: Jitter::Off,
            longest_delay: Duration::from_secs(3),
            ..RetryPolicy::for_models()
        };
        assert_eq!(
            all(&policy, None),
            [
                Ok((2, 500)),
                Ok((3, 1000)),
                Ok((4, 2000)),
                Ok((5, 3000)),
                Err(GaveUp::AfterAttempts(5))
            ]
        );
    }

    #[test]
    fn a_wait_that_was_asked_for_is_the_least_and_too_long_a_one_is_final() {
        let policy = RetryPolicy { jitter: Jitter::Off, ..RetryPolicy::for_models() };
        assert_eq!(
            all(&policy, Some(Duration::from_millis(1500))),
            [
                Ok((2, 1500)),
                Ok((3, 1500)),
                Ok((4, 2000)),
                Ok((5, 4000)),
                Err(GaveUp::AfterAttempts(5))
            ]
        );
        assert_eq!(
            policy.schedule().failed(Some(Duration::from_secs(121))),
            Err(GaveUp::WaitTooLong {
                asked: Duration::from_secs(121),
                longest: Duration::from_secs(120)
            })
        );
        assert_eq!(
            policy.schedule().failed(Some(Duration::from_secs(120))),
            Ok((2, Duration::from_secs(120)))
        );
    }

    #[test]
    fn a_seed_repeats_the_jitter_which_never_shortens_a_delay() {
        let policy = RetryPolicy { jitter: Jitter::Seeded(7), ..RetryPolicy::for_models() };
        let delays = all(&policy, None);
        assert_eq!(delays, all(&policy, None));
        for (delay, least) in delays.iter().flatten().zip([500, 1000, 2000, 4000]) {
            assert!((least..=2 * least).contains(&delay.1), "{delay:?} for {least}");
        }
    }

    #[test]
    fn a_single_attempt_is_never_repeated() {
        let policy = RetryPolicy { attempts: 1, ..RetryPolicy::for_models() };
        assert_eq!(policy.schedule().failed(None), Err(GaveUp::AfterAttempts(1)));
    }
}
