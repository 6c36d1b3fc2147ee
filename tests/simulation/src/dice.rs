/// Numbers that look random and follow from a seed, the same in every release: a seed that found something must find it
/// again, whatever became of the crates that draw random numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that are thrown in an order of their own.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for a part of the run, so that what one part draws changes nothing for the others.
    #[must_use]
    pub fn of(seed: u64, part: &str) -> Self {
        let mixed = part.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(mixed)
    }

    /// Any number (splitmix64).
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 when there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.any().checked_rem(limit).unwrap_or(0)
    }

    /// A place in a list of this length; `None` when it is empty.
    pub fn place(&mut self, length: usize) -> Option<usize> {
        (length > 0).then(|| usize::try_from(self.below(length as u64)).unwrap_or(0))
    }

    /// A number from `least` to `most`.
    pub fn from_to(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Whether something happens that does so `permille` times in a thousand.
    pub fn happens(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// One of these, each as often as its weight says.
    pub fn pick<T: Copy>(&mut self, weighted: &[(u64, T)]) -> Option<T> {
        let mut left = self.below(weighted.iter().map(|(weight, _)| weight).sum());
        weighted.iter().find_map(|(weight, one)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                None
            }
            None => Some(*one),
        })
    }
}
