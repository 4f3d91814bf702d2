//go:build !linux && !darwin

package kernel

func reserve(uint64) ([]byte, bool) { return nil, false }

func release([]byte) {}

func unreserve([]byte) {}
