//! Device code in data files, which Python writes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::example::names;
use support::kpack;

use super::embedded::forms;
use super::{Case, messages, of_device_code, path_of, with_code};

#[test]
fn r141_names_data_files_with_device_code() {
    kpack::need_python();
    let case = Case::new();
    let mut expected = BTreeSet::new();
    for (number, (form, bytes)) in forms().into_iter().enumerate() {
        let folder = format!("share/{number}");
        kpack::data_files(&bytes, &case.file(&folder), &case.file("share/without"));
        let with = names(&case.file(&folder)).into_iter();
        expected.extend(with.map(|name| (format!("{folder}/{name}"), json!(form).to_string())));
    }
    let findings = case.built();
    assert!(of_device_code(&findings).is_empty(), "{findings:?}");
    let found = with_code(&findings, "R141")
        .map(|finding| (path_of(finding), finding.field::<Value>("form").unwrap().to_string()));
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
    let message = "contains a code object, which stays in the host package for every GPU: ship it as a separate file";
    assert_eq!(messages(&findings, "R141")[0], message);
}
