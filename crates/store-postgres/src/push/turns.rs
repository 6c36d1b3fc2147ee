//! Fair turns: one of each host, again and again.

/// The hosts of a claim: how many deliveries each has given, and which have no more.
#[derive(Debug)]
pub(super) struct Turns {
    /// In the order of their turns.
    given: Vec<usize>,
    is_open: Vec<bool>,
    limit: usize,
}

impl Turns {
    /// So many hosts, of which `limit` deliveries are wanted.
    pub(super) fn new(hosts: usize, limit: usize) -> Self {
        Self { given: vec![0; hosts], is_open: vec![true; hosts], limit }
    }

    /// How many deliveries are to be asked of which host, by its place: as many as it would have given when all that are left
    /// take turns. Empty when nothing more is wanted, or to be had.
    pub(super) fn quotas(&self) -> Vec<(usize, usize)> {
        let hosts = self.given.iter().zip(&self.is_open).enumerate();
        let open: Vec<(usize, usize)> =
            hosts.filter(|(_, (_, is_open))| **is_open).map(|(place, (given, _))| (place, *given)).collect();
        let closed: usize =
            self.given.iter().zip(&self.is_open).filter(|(_, open)| !**open).map(|(given, _)| given).sum();
        let (Some(each), Some(more)) = (
            self.limit.saturating_sub(closed).checked_div(open.len()),
            self.limit.saturating_sub(closed).checked_rem(open.len()),
        ) else {
            return Vec::new();
        };
        let wanted = open.into_iter().enumerate().map(|(turn, (place, given))| {
            let share = each + usize::from(turn < more);
            (place, share.saturating_sub(given))
        });
        wanted.filter(|(_, quota)| *quota > 0).collect()
    }

    /// A host that was asked for `quota` deliveries gave so many.
    pub(super) fn gave(&mut self, place: usize, quota: usize, given: usize) {
        if let (Some(before), Some(is_open)) = (self.given.get_mut(place), self.is_open.get_mut(place)) {
            *before += given;
            *is_open = given >= quota;
        }
    }
}

/// What each host has given, one of each at a time.
pub(super) fn in_turns<T>(hosts: Vec<Vec<T>>) -> Vec<T> {
    let mut lines: Vec<_> = hosts.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    while !lines.is_empty() {
        lines.retain_mut(|line| match line.next() {
            Some(next) => {
                all.push(next);
                true
            }
            None => false,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what hosts have, and answers how much of each, and in how many rounds.
    fn take(line: &[usize], limit: usize) -> (Vec<usize>, usize) {
        let mut left = line.to_vec();
        let mut turns = Turns::new(line.len(), limit);
        for round in 0.. {
            let quotas = turns.quotas();
            if quotas.is_empty() {
                return (turns.given, round);
            }
            for (place, quota) in quotas {
                let given = quota.min(left[place]);
                left[place] -= given;
                turns.gave(place, quota, given);
            }
        }
        unreachable!()
    }

    /// The same by the plain rule.
    fn take_one_by_one(line: &[usize], limit: usize) -> Vec<usize> {
        let mut taken = vec![0; line.len()];
        while taken.iter().sum::<usize>() < limit && taken != line {
            for place in 0..line.len() {
                if taken.iter().sum::<usize>() < limit && taken[place] < line[place] {
                    taken[place] += 1;
                }
            }
        }
        taken
    }

    #[test]
    fn hosts_give_as_many_as_if_they_took_turns() {
        for a in 0..5 {
            for b in 0..5 {
                for c in 0..5 {
                    for d in [0, 1, 20] {
                        for limit in 0..14 {
                            let line = [a, b, c, d];
                            assert_eq!(take(&line, limit).0, take_one_by_one(&line, limit), "{line:?} {limit}");
                        }
                    }
                }
            }
        }
        assert_eq!(take(&[], 7), (vec![], 0));
    }

    #[test]
    fn what_is_plenty_takes_one_round() {
        assert_eq!(take(&[900, 900, 900], 64), (vec![22, 21, 21], 1));
        assert_eq!(take(&[1, 900, 900], 64), (vec![1, 32, 31], 2));
    }

    #[test]
    fn hosts_come_one_after_the_other() {
        assert_eq!(
            in_turns(vec![vec!["a", "aa"], vec![], vec!["b"], vec!["c", "cc", "ccc"]]),
            ["a", "b", "c", "aa", "cc", "ccc"]
        );
    }
}
