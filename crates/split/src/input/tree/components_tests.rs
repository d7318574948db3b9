use super::*;

/// Paths of Debian's packages, below `usr`: artifact, kind, path.
const DEBIAN: &str = "
    sparse lib lib/x86_64-linux-gnu/librocsparse.so.0.1
    amd-llvm lib lib/x86_64-linux-gnu/libamd_comgr.so.2.4.0
    core-hip lib lib/x86_64-linux-gnu/libamdhip64.so.5
    core-hip lib lib/x86_64-linux-gnu/libhiprtc-builtins.so.5.7.31921
    core-runtime lib lib/x86_64-linux-gnu/libhsa-runtime64.so.1
    core-runtime lib lib/x86_64-linux-gnu/libhsakmt.so.1.0.6
    rocprofiler-sdk lib lib/x86_64-linux-gnu/libroctx64.so.4
    amd-dbgapi lib lib/x86_64-linux-gnu/librocm-dbgapi.so.0.70.1
    base lib lib/x86_64-linux-gnu/librocm_smi64.so.1
    core-amdsmi lib lib/x86_64-linux-gnu/libamd_smi.so.0
    core-ocl lib lib/x86_64-linux-gnu/libamdocl64.so
    blas lib lib/x86_64-linux-gnu/rocblas/2.47.0/library/Kernels.so-000-gfx90a-xnack+.hsaco
    fft lib lib/x86_64-linux-gnu/rocfft/1.0.27/rocfft_rtc_helper
    amd-llvm lib lib/x86_64-linux-gnu/amdgcn/bitcode/ockl.bc
    amd-llvm dev lib/x86_64-linux-gnu/cmake/AMDDeviceLibs/AMDDeviceLibsConfig.cmake
    core-hip dev lib/x86_64-linux-gnu/cmake/hip-lang/hip-lang-config.cmake
    core-hip dev lib/x86_64-linux-gnu/cmake/hip/FindHIP.cmake
    core-runtime dev lib/x86_64-linux-gnu/pkgconfig/libhsakmt.pc
    amd-llvm lib lib/llvm-17/lib/clang/17/amdgcn/bitcode/ocml.bc
    base lib lib/python3/dist-packages/rsmiBindings.py
    amd-llvm lib bin/hipcc
    core-hip lib bin/hipcc_cmake_linker_helper
    amd-llvm lib bin/hipvars.pm
    hipify lib bin/hipify-perl
    core-hip lib bin/roc-obj-ls
    core-runtime lib bin/rocm_agent_enumerator
    base test bin/rocm-test-launcher
    - lib bin/autopkgtest-virt-qemu+rocm
    base dev include/half.hpp
    prim dev include/hipcub/block/block_load.hpp
    sparse dev include/rocsparse/rocsparse.f90
    rocprofiler-sdk dev include/roctracer/roctx.h
    prim dev include/thrust/sort.h
    core-amdsmi lib libexec/amdsmi_cli/amdsmi_cli.py
    base lib libexec/rocm_smi/rocm_smi.py
    blas test libexec/rocm/librocblas0-bench/rocblas-bench
    rand test libexec/rocm/libhiprand1-tests/test_hiprand_api
    rccl test libexec/rocm/librccl1-tests/UnitTests
    prim dev share/cmake/rocthrust/rocthrust-config.cmake
    blas doc share/doc-base/librocblas-doc.librocblas-doc
    sparse lib share/doc/librocsparse0/copyright
    sparse doc share/doc/librocsparse0/changelog.Debian.gz
    sparse lib share/doc/librocsparse-dev/copyright
    sparse doc share/doc/librocsparse-dev/html/license.html
    fft doc share/doc/librocfft-dev/examples/rocfft_example.cpp
    core-hip lib share/hip/version
    blas lib share/lintian/overrides/librocblas0
    core-runtime doc share/man/man1/rocminfo.1.gz
    blas test share/rocblas/2.47.0/test/rocblas_gtest.data
    base dev share/rocm/cmake/ROCMConfig.cmake
    base dev share/rocmcmakebuildtools/cmake/ROCMSetupVersion.cmake
    - lib share/doc/pkg-rocm-tools/copyright
    - dbg lib/debug/.build-id/0a/1b.debug
    - dbg lib/debug/.dwz/x86_64-linux-gnu/librocsparse0.debug
";

/// Paths of AMD's packages and of TheRock's patterns, below the prefix.
const PREFIX: &str = "
    base lib .info/version
    - dbg .build-id/0a/1b.debug
    sparse lib .kpack/sparse_lib_gfx942.kpack
    blas lib lib/.kpack/blas_lib.kpm
    kpack-shim lib lib/.kpack/librocm_kpack_shim.so.0
    amd-llvm lib amdgcn
    amd-llvm lib llvm
    amd-llvm lib llvm/bin/clang
    amd-llvm lib bin/amdclang++
    miopen lib bin/MIOpenDriver
    rccl test bin/all_reduce_perf
    blas test bin/hipblaslt_gtest.data
    blas test bin/rocblas-test
    blas test bin/rocblas_smoke.yaml
    blas test bin/rocblas/CTestTestfile.cmake
    rocprofiler-systems lib bin/rocprof-sys-sample
    rocprofiler-sdk lib bin/rocprofv3-avail
    rocrtst test bin/rocrtst64
    sparse lib bin/rocsparse_mtx2csr
    rand test bin/test_rocrand_basic
    - test bin/test_block_scan
    core-ocl dev include/CL/cl.h
    composable-kernel dev include/ck_tile/core.hpp
    blas dev include/rocblas.h
    sparse dev include/rocsparse.mod
    core-hip lib lib/.hipInfo
    rocal lib lib/amd/rocal/pipeline.py
    fft lib lib/asan/libhipfft.so.0
    blas lib lib/hipblaslt/library/gfx942/Kernels.so-000-gfx942.hsaco
    host-blas lib lib/host-math/lib/librocm-openblas.so.0
    miopen lib lib/libMIOpen.so.1
    miopen lib lib/libMIOpenCKGroupedConv_gfx942.so
    composable-kernel dev lib/libdevice_gemm_operations.a
    blas lib lib/libhipblas.so.3
    blas lib lib/libhipblaslt.so.1
    sparse lib lib/libhipsparselt.so.0
    aqlprofile lib lib/libhsa-amd-aqlprofile64.so.1
    blas lib lib/librocblas_fortran.so
    rocr-debug-agent lib lib/librocm-debug-agent.so.2
    base lib lib/librocprofiler-register.so.0
    rocprofiler-sdk lib lib/librocprofiler-sdk-roctx.so
    sparse dbg lib/librocsparse.so.1.debug
    - test lib/libtest_linking_a.so
    mivisionx lib lib/libvx_rpp.so
    - lib lib/libmine.so.1
    amd-llvm lib lib/llvm/bin/c-index-test
    amd-llvm lib lib/llvm/include/c++/v1/vector
    amd-llvm dev lib/llvm/include/clang/AST/AST.h
    amd-llvm lib lib/llvm/include/flang/iso_c_binding.mod
    amd-llvm lib lib/llvm/lib/clang/20/include/opencl-c.h
    amd-llvm lib lib/llvm/lib/clang/20/lib/linux/libclang_rt.builtins-x86_64.a
    amd-llvm dev lib/llvm/lib/cmake/clang/ClangConfig.cmake
    amd-llvm dev lib/llvm/lib/libLLVMCore.a
    amd-llvm doc lib/llvm/share/man/man1/clang.1
    rocprofiler-sdk lib lib/python3.12/site-packages/rocpd/__init__.py
    sysdeps dev lib/rocm_sysdeps/include/zlib.h
    sysdeps lib lib/rocm_sysdeps/share/libdrm/amdgpu.ids
    rocprofiler-sdk lib lib/roctracer/libfile_plugin.so
    blas dev lib64/cmake/hipblas-common/hipblas-common-config.cmake
    blas test libexec/hipblaslt-samples/sample_hipblaslt_gemm
    rocprofiler-compute lib libexec/rocprofiler-compute/rocprof_compute_soc/analysis_configs/gfx942/0200.yaml
    sparse test libexec/rocsparse/test/rocsparse_gentest.py
    core-ocl lib etc/OpenCL/vendors/amdocl64.icd
    core-ocl lib opencl/bin/clinfo
    amd-llvm lib share/doc/ROCm-Device-Libs/rocm-device-libs/LICENSE.TXT
    core-hip test share/hip/catch_tests/DeviceLib
    core-hip dev share/hip/samples/0_Intro/bit_extract/bit_extract.cpp
    amd-dbgapi doc share/html/amd-dbgapi/index.html
    rocgdb doc share/info/rocgdb.info
    fft lib share/licenses/rocfft/LICENSE.md
    miopen lib share/miopen/db/gfx942.kdb
    base dev share/modulefiles/rocm/6.4.1
    - lib share/mine/rocblas/notes.txt
    rocprofiler-sdk lib share/rocprofiler-sdk/counter_defs.yaml
    - test tests/ocltst/oclruntime
";

#[test]
fn the_table_can_be_read_and_has_each_word_once() {
    let table: BTreeMap<String, Vec<String>> = toml::from_str(TEXT).unwrap();
    let mut words: Vec<&String> = table.values().flatten().collect();
    for word in &words {
        assert!(!word.starts_with("lib") && **word == word.to_lowercase(), "{word}");
    }
    let count = words.len();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), count);
    for artifact in table.keys() {
        assert!(!artifact.contains('_'), "{artifact} cannot be part of an artifact's name");
    }
}

#[test]
fn paths_have_artifacts_and_kinds() {
    for row in [DEBIAN, PREFIX].into_iter().flat_map(|rows| rows.trim().lines()) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let &[artifact, kind, path] = fields.as_slice() else { panic!("{row}") };
        let path = TreePath::new(path).unwrap();
        assert_eq!(artifact_of(&path).unwrap_or("-"), artifact, "{path}");
        assert_eq!(kind_of(&path).as_str(), kind, "{path}");
    }
}
