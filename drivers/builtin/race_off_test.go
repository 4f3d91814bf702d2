//go:build !race

package builtin_test

const unbounded = false
