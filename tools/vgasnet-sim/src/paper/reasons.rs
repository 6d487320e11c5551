//! The reasons for deviations of the paper's protocol on the paper's machine, each with numbers from further runs.

use super::{
    Choice, Claim, Figures, PUTS, RANDOM_GAIN_BEYOND, RANDOM_LEAST, SEQUENTIAL_GAIN_MOST, SEQUENTIAL_LEAST,
    SEQUENTIAL_MOST, SHARING_PART, SHARING_TIMES, claims, measure, puts_seconds, random_gain, round_seconds,
};
use crate::{Machine, Table, short};
use serde::Serialize;

/// Message handling times in further runs, in microseconds.
const MESSAGES_US: [f64; 3] = [50.0, 200.0, 500.0];

/// Results with more expensive messages.
#[derive(Clone, Debug, Serialize)]
pub struct Dearer {
    /// Time to handle a message, in microseconds.
    pub message_us: f64,
    /// The paper's numbers next to the model's.
    pub claims: Vec<Claim>,
}

impl Dearer {
    fn model(&self, what: &str) -> f64 {
        number(&self.claims, what)
    }
}

fn number(claims: &[Claim], what: &str) -> f64 {
    claims.iter().find(|claim| claim.what == what).map_or(f64::NAN, |claim| claim.model)
}

impl Figures {
    /// Adds a reason to each claim that deviates.
    pub(super) fn explained(mut self, machine: &Machine, choice: Choice) -> Result<Figures, String> {
        let choice = Choice { ends_only: true, ..choice };
        for message_us in MESSAGES_US {
            let mut machine = machine.clone();
            machine.node.message_us = message_us;
            let claims = claims(&machine, &measure(&machine, choice)?);
            self.dearer.push(Dearer { message_us, claims });
        }
        let reasons = self.claims.iter().map(|claim| claim.is_off().then(|| self.reason(claim, machine)).flatten());
        let reasons: Vec<_> = reasons.collect();
        self.claims.iter_mut().zip(reasons).for_each(|(claim, because)| claim.because = because);
        Ok(self)
    }

    fn reason(&self, claim: &Claim, machine: &Machine) -> Option<String> {
        let [dear, dearer, dearest] = &self.dearer[..] else { return None };
        let usual = machine.node.message_us;
        Some(match claim.what {
            SEQUENTIAL_MOST => format!(
                "In the model all ranks miss the same page at the same time, the one that has read it serves the others, and its \
                 link is the limit. Ranks that drift apart find pages at many: where a message takes {} us in place of {usual} they \
                 do, and it is {}.",
                dear.message_us,
                short(dear.model(claim.what))
            ),
            SEQUENTIAL_GAIN_MOST => format!(
                "The same: ranks in step find a page at the home only, which serves them so without cooperation, too. Where a \
                 message takes {} us it is {}.",
                dearer.message_us,
                short(dearer.model(claim.what))
            ),
            RANDOM_LEAST => format!(
                "The paper's speed falls where data outgrows one pool, and the model's does not: the home handles a notice of an \
                 eviction in {usual} us. Where a message takes {} us it is {}. That is not all of it: in order it is {} to {} then.",
                dearest.message_us,
                short(dearest.model(claim.what)),
                short(dearest.model(SEQUENTIAL_LEAST)),
                short(dearest.model(SEQUENTIAL_MOST))
            ),
            RANDOM_GAIN_BEYOND => {
                let gains = random_gain(&self.measured).into_iter().filter(|(data, _)| *data > 1.0);
                let gains = gains.map(|(data, gain)| format!("{} with {data}", short(gain)));
                let gains = gains.collect::<Vec<_>>().join(", ");
                format!("By pools of data it is {gains}. The paper does not say at which sizes it looked.")
            }
            SHARING_PART => format!(
                "In the model a rank that got the page does its ten puts before it gives the page up, with cooperation and without. If the \
                 paper's ranks did one put a turn without cooperation, the model's part would be {}.",
                short(claim.model / f64::from(PUTS))
            ),
            SHARING_TIMES => {
                let round = round_seconds(&self.measured, 32, true)?;
                let put = puts_seconds(machine, 32) / f64::from(PUTS);
                format!(
                    "The model's put_bulk is one RDMA of {:.1} us. A round, in which the page visits 32 ranks, takes {:.0} ms. With the \
                     paper's ratio a put_bulk took {:.1} ms there, which is no time of the link: its target must have been polled for.",
                    put * 1e6,
                    round * 1e3,
                    round * 1e3 / f64::from(PUTS) / claim.paper
                )
            }
            _ => return None,
        })
    }

    /// The claims by message handling time.
    pub fn dearer_table(&self) -> Table {
        let heads = self.dearer.iter().map(|one| format!("messages of {} us", one.message_us));
        let heads: Vec<String> = ["", "the paper", "as it is"].map(str::to_owned).into_iter().chain(heads).collect();
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        for claim in &self.claims {
            let numbers = self.dearer.iter().map(|one| short(one.model(claim.what)));
            let cells = [claim.what.to_owned(), claim.paper_cell(), short(claim.model)];
            table.row(cells.into_iter().chain(numbers).collect());
        }
        table
    }

    /// The number of claims matched with each message handling time.
    pub fn dearer_says(&self) -> String {
        let near = |claims: &[Claim]| claims.iter().filter(|claim| !claim.is_off()).count();
        let others =
            self.dearer.iter().map(|one| format!("{} with messages of {} us", near(&one.claims), one.message_us));
        let others = others.collect::<Vec<_>>().join(", ");
        format!("Of {} numbers, {} are within a third as it is, {others}.", self.claims.len(), near(&self.claims))
    }
}
