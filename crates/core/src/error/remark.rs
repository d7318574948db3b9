//! Remarks from before an error that may explain it.

use std::collections::BTreeSet;

use super::Error;

/// A remark of a run that fails later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// The remark as a JSON object. Remarks are sorted by it.
    pub json: String,
    /// The remark as one line of text.
    pub text: String,
}

impl Remark {
    /// Whether the remark is a mere note.
    pub fn is_note(&self) -> bool {
        self.text.starts_with("note: ")
    }
}

impl Error {
    /// Adds earlier remarks, which may explain this error.
    pub fn explained(mut self, remarks: impl IntoIterator<Item = Remark>) -> Self {
        self.inner.remarks.extend(remarks);
        self
    }

    /// Takes the remarks out of this error and all further faults, each once.
    pub fn take_remarks(&mut self) -> BTreeSet<Remark> {
        let mut taken = BTreeSet::from_iter(std::mem::take(&mut self.inner.remarks));
        self.inner.others.iter_mut().for_each(|fault| taken.extend(fault.take_remarks()));
        taken
    }

    /// The remarks of this error and all further faults, each once.
    pub fn remarks(&self) -> BTreeSet<&Remark> {
        self.flattened().flat_map(|fault| &fault.inner.remarks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_of_gathered_faults_are_told_once() {
        let first = Error::malformed("a").explained([remark("y"), remark("x")]);
        let second = Error::malformed("b").explained([remark("x")]);
        let mut all = Error::gather(vec![first, second]).unwrap();
        let told: Vec<&str> =
            all.remarks().into_iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(told, ["x", "y"]);
        assert_eq!(all.take_remarks().len(), 2);
        assert!(all.remarks().is_empty());
    }

    fn remark(text: &str) -> Remark {
        Remark { json: format!("{{\"a\":\"{text}\"}}"), text: text.to_owned() }
    }
}
