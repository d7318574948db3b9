# Stands in for crt1.o, crti.o and libc_nonshared.a, which differ between Debian releases: with it
# the result depends on clang and lld alone.
#ifdef PROGRAM
	.text
	.globl	_start
	.type	_start, @function
_start:
	xorl	%ebp, %ebp
	movq	%rdx, %r9
	popq	%rsi
	movq	%rsp, %rdx
	andq	$-16, %rsp
	pushq	%rax
	pushq	%rsp
	xorl	%r8d, %r8d
	xorl	%ecx, %ecx
	movq	main@GOTPCREL(%rip), %rdi
	call	*__libc_start_main@GOTPCREL(%rip)
	hlt
	.size	_start, .-_start
#endif

	.text
	.globl	atexit
	.hidden	atexit
	.type	atexit, @function
atexit:
	leaq	__dso_handle(%rip), %rdx
	xorl	%esi, %esi
	jmp	*__cxa_atexit@GOTPCREL(%rip)
	.size	atexit, .-atexit

	.data
	.globl	__dso_handle
	.hidden	__dso_handle
	.p2align 3
__dso_handle:
	.quad	__dso_handle
	.section .note.GNU-stack,"",@progbits
