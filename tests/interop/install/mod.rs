//! Package sets in apt, dnf and zypper: the packages that they install, and the system after an installation,
//! an update and a removal.
//!
//! A *system* is a root with a package manager: Debian 12 and 13 by mmdebstrap, and a root for rpm whose base
//! is one package. A *scenario* is the same for all of them. A further naming scheme is one more
//! [`sets::Recipe`] and its scenarios.

mod alternatives;
mod cmake;
mod container;
mod debian;
mod debug;
mod empty;
mod foreign;
mod gpus;
mod kinds;
pub mod own;
mod rpm;
mod runtime;
mod scenarios;
mod series;
mod sets;
mod sid;
mod system;
mod updates;

/// One test for each scenario and system; systems that the machine cannot make are skipped. Debian 12 has other
/// versions of dpkg and apt than Debian 13: every change tries the scenarios of `each` there, and `.ci/nightly`
/// all of them.
macro_rules! on_every_system {
    (
        each { $($first:ident: $($sample:ident)*;)* }
        $($module:ident: $($scenario:ident)*;)*
    ) => {
        mod debian_12 {
            $($(#[test]
            fn $sample() {
                crate::install::debian::with_root("bookworm", crate::install::$first::$sample);
            })*)*
            $($(#[test]
            #[ignore = "runs on Debian 13; on Debian 12 in nightly runs"]
            fn $scenario() {
                crate::install::debian::with_root("bookworm", crate::install::$module::$scenario);
            })*)*
        }
        mod debian_13 {
            $($(#[test]
            fn $sample() {
                crate::install::debian::with_root("trixie", crate::install::$first::$sample);
            })*)*
            $($(#[test]
            fn $scenario() {
                crate::install::debian::with_root("trixie", crate::install::$module::$scenario);
            })*)*
        }
        mod rpm_root {
            $($(#[test]
            fn $sample() {
                crate::install::rpm::with_root(crate::install::$first::$sample);
            })*)*
            $($(#[test]
            fn $scenario() {
                crate::install::rpm::with_root(crate::install::$module::$scenario);
            })*)*
        }
    };
}

on_every_system! {
    each {
        scenarios:
        a_group_brings_its_host_and_no_other_group
        a_path_goes_to_another_package;

        kinds:
        folders_and_links_change_places;

        own:
        rockpack_itself_is_installed_and_works;

        runtime:
        the_runtime_library_loads_what_is_installed;
    }

    scenarios:
    all_groups_stand_side_by_side
    a_removal_leaves_configuration_at_most
    an_update_leaves_nothing_of_the_earlier_set
    a_package_goes_into_another
    a_legacy_package_is_replaced
    trees_of_other_installers_stay_as_they_are
    a_prefix_behind_a_link_is_refused
    folders_of_the_system_may_be_links
    the_longest_names_are_unpacked
    minor_versions_stand_side_by_side
    a_program_finds_the_libraries
    a_target_of_amds_names_brings_its_host_and_no_other_target
    amds_names_are_updated_in_place;

    series:
    a_link_leads_to_the_newest_series;

    alternatives:
    an_alternative_goes_with_its_program;

    cmake:
    the_packages_of_a_cmake_project_are_installed;

    kinds:
    a_link_takes_the_place_of_a_folder_that_packages_share
    a_folder_takes_the_place_of_a_link_of_another_package
    files_of_nobody_in_a_folder_that_becomes_a_link_are_kept
    folders_stay_where_the_earlier_set_is_not_named;

    debug:
    versions_and_families_share_debug_files;

    gpus:
    what_is_printed_brings_the_kernels_of_the_machine;

    runtime:
    the_runtime_library_loads_what_is_stored;
}
