//go:build !linux

package serve

import "errors"

// No engine runs here, and none listens.
func peerOf(int) (pid, uid int, err error)   { return 0, 0, errors.ErrUnsupported }
func processAt(int) (pid, fd int, err error) { return 0, -1, errors.ErrUnsupported }
func living(int) bool                        { return false }
