//! Device code in data files, which Python writes.

use std::collections::BTreeSet;

use rockpack_report::Finding;
use support::example::names;
use support::kpack;

use super::embedded::forms;
use super::{Case, messages, of_device_code};

#[test]
fn r141_names_data_files_with_device_code() {
    kpack::need_python();
    let case = Case::new();
    let mut expected = BTreeSet::new();
    for (number, (form, bytes)) in forms().into_iter().enumerate() {
        let folder = format!("share/{number}");
        kpack::data_files(&bytes, &case.file(&folder), &case.file("share/without"));
        let with = names(&case.file(&folder)).into_iter();
        expected.extend(with.map(|name| (format!("{folder}/{name}"), form)));
    }
    let findings = case.built();
    assert!(of_device_code(&findings).is_empty(), "{findings:?}");
    let found = findings.iter().filter_map(|finding| match finding {
        Finding::DeviceCodeInData { file, form } => Some((file.path.to_string(), *form)),
        _ => None,
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
    let message = "holds a code object, which stays in the host package, whatever the GPU: ship it as a file of its own";
    assert_eq!(messages(&findings, "R141")[0], message);
}
