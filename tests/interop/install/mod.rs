//! Package sets in the hands of apt and dnf: which packages they bring, and what is there after an
//! installation, an update and a removal.
//!
//! A *system* is a root with a package manager: Debian 12 and 13 by debootstrap, and a root for rpm
//! whose base is one package. A *scenario* is the same for all of them. A further naming scheme is
//! one more [`sets::Recipe`] and its scenarios.

mod alternatives;
mod debian;
mod debug;
mod foreign;
mod rpm;
mod scenarios;
mod sets;
mod system;

/// One test for each scenario and system; those that a machine cannot make are skipped. In every run a
/// scenario is tried with dnf, and with apt on one release of Debian.
macro_rules! on_every_system {
    (
        debian_12: $($one:ident::$on_12:ident)*;
        debian_13: $($other:ident::$on_13:ident)*;
    ) => {
        mod debian_12 {
            use crate::install::debian::with_root;
            $(#[test]
            fn $on_12() {
                with_root("bookworm", crate::install::$one::$on_12);
            })*
            $(#[test]
            #[ignore = "on Debian 13 in every run: .ci/nightly"]
            fn $on_13() {
                with_root("bookworm", crate::install::$other::$on_13);
            })*
        }
        mod debian_13 {
            use crate::install::debian::with_root;
            $(#[test]
            #[ignore = "on Debian 12 in every run: .ci/nightly"]
            fn $on_12() {
                with_root("trixie", crate::install::$one::$on_12);
            })*
            $(#[test]
            fn $on_13() {
                with_root("trixie", crate::install::$other::$on_13);
            })*
        }
        mod rpm_root {
            use crate::install::rpm::with_root;
            $(#[test]
            fn $on_12() {
                with_root(crate::install::$one::$on_12);
            })*
            $(#[test]
            fn $on_13() {
                with_root(crate::install::$other::$on_13);
            })*
        }
    };
}

on_every_system! {
    debian_12:
    alternatives::an_alternative_goes_with_its_program
    debug::versions_and_families_share_debug_files
    scenarios::a_group_brings_its_host_and_no_other_group
    scenarios::a_package_goes_into_another
    scenarios::a_prefix_behind_a_link_is_refused
    scenarios::a_target_of_amds_names_brings_its_host_and_no_other_target
    scenarios::all_groups_stand_side_by_side;

    debian_13:
    scenarios::a_legacy_package_is_replaced
    scenarios::a_path_goes_to_another_package
    scenarios::a_program_finds_the_libraries
    scenarios::a_removal_leaves_configuration_at_most
    scenarios::amds_names_are_updated_in_place
    scenarios::an_update_leaves_nothing_of_the_earlier_set
    scenarios::minor_versions_stand_side_by_side
    scenarios::trees_of_other_installers_stay_as_they_are;
}
