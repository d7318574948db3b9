//! Remarks from before an error that may explain it.

use std::collections::BTreeSet;

use super::Error;

/// A remark of a run that fails later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// The remark as a JSON object. Remarks are sorted by it.
    pub json: String,
    pub text: String,
}

impl Remark {
    pub fn is_note(&self) -> bool {
        self.text.starts_with("note: ")
    }
}

impl Error {
    /// Adds earlier remarks, which may explain this error.
    pub fn with_remarks(mut self, remarks: impl IntoIterator<Item = Remark>) -> Self {
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
    fn remarks_of_gathered_faults_are_reported_once() {
        let first = Error::malformed("a").with_remarks([remark("y"), remark("x")]);
        let second = Error::malformed("b").with_remarks([remark("x")]);
        let mut all = Error::gather(vec![first, second]).unwrap();
        let texts: Vec<&str> =
            all.remarks().into_iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(texts, ["x", "y"]);
        assert_eq!(all.take_remarks().len(), 2);
        assert!(all.remarks().is_empty());
    }

    fn remark(text: &str) -> Remark {
        Remark { json: format!("{{\"a\":\"{text}\"}}"), text: text.to_owned() }
    }
}
