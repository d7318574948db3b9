//! Hotfixes keep packages of receipts whose signature is good, or that have none.

use std::fs;
use std::path::Path;

use support::example::{configuration, rockpack};
use support::gpg_keys::key;
use support::tools;

use super::{BLAS, Case, set};

/// What a plan of release 2 says that updates release 1, with further options.
fn plan(case: &Case, options: &[&str]) -> String {
    let mut plan = case.command("plan", "2");
    tools::told(plan.arg("--since").arg(case.receipt("1")).args(options))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn packages_of_a_signed_receipt_are_kept_by_its_key() {
    tools::need(&["gpg", "gpgconf"]);
    let room = tempfile::tempdir().unwrap();
    let (own, other) = (key(room.path(), "own", "ed25519"), key(room.path(), "new", "ed25519"));
    let case = Case::new(&["--sign-key", text(&own.secret)]);
    case.change_blas();
    // By the key that the run signs with.
    let said = tools::told(case.hotfix("2", &["1"]).args(["--sign-key", text(&own.secret)]));
    assert!(said.contains("keeps 16") && !said.contains("R137"), "{said}");
    assert_eq!(case.made("2"), set(&BLAS));
    let by_both = ["--receipt-key", text(&other.public), "--receipt-key", text(&own.public)];
    let said = plan(&case, &by_both);
    assert!(said.contains("keeps 16") && !said.contains("R137"), "{said}");
    // By no key that is given.
    for (options, reason) in [
        (&[][..], "no key was given to check it"),
        (&by_both[..2], "is signed by another key"),
        (&["--only", "blas"][..], "no key was given to check it"),
    ] {
        let said = plan(&case, options);
        assert_eq!(said.matches("R137 receipt-unproved: 7.1.0-1").count(), 1, "{said}");
        assert!(said.contains(reason) && !said.contains("R112"), "{said}");
    }
    // Another version keeps nothing, so it does not matter.
    let mut next = rockpack();
    next.arg("plan").arg("--artifacts").arg(case.path("shards")).arg("--config");
    next.arg(configuration()).args(["--version", "7.2.0", "--since"]).arg(case.receipt("1"));
    let said = tools::told(&mut next);
    assert!(said.contains("exit status: 0") && !said.contains("R137"), "{said}");
    // Of other bytes.
    let receipt = fs::read_to_string(case.receipt("1")).unwrap();
    fs::write(case.receipt("1"), format!("{receipt}\n")).unwrap();
    let said = plan(&case, &by_both);
    assert!(said.contains("packages.json.asc: has a signature that is of other data"), "{said}");
    assert!(said.contains("exit status: 2"), "{said}");
    // Without a signature.
    fs::remove_file(case.receipt("1").with_extension("json.asc")).unwrap();
    let said = plan(&case, &by_both);
    assert!(said.contains("keeps 16"), "{said}");
    assert!(
        said.contains("R137 receipt-unproved: 7.1.0-1: its receipt has no signature"),
        "{said}"
    );
}

/// A package of a later receipt that is not trusted is made again, even if an earlier one is.
#[test]
fn a_later_receipt_counts_whether_or_not_it_is_trusted() {
    tools::need(&["gpg", "gpgconf"]);
    let room = tempfile::tempdir().unwrap();
    let (own, other) = (key(room.path(), "own", "ed25519"), key(room.path(), "new", "ed25519"));
    let case = Case::new(&["--sign-key", text(&own.secret)]);
    case.change_blas();
    let by_own = ["--receipt-key", text(&own.public)];
    tools::run(case.hotfix("2", &["1"]).args(["--sign-key", text(&other.secret)]).args(by_own));
    let mut plan = case.command("plan", "3");
    plan.arg("--since").arg(case.receipt("1")).arg("--since").arg(case.receipt("2"));
    let said = tools::told(plan.args(by_own));
    assert!(said.contains("R137 receipt-unproved: 7.1.0-2"), "{said}");
    assert!(!said.contains("R112"), "{said}");
}
