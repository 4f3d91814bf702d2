package op

import (
	"errors"
	"fmt"
	"io/fs"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/store"
)

// failed is what was found wrong by a call that was well made: the file that it
// names is mistaken, what it looks at is damaged. Nil for nothing.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &Failed{err}
}

// FileFault says why a file that the caller named can't be read or written.
func FileFault(do, field, path string, err error) error {
	say := func(code core.Code, format string, args ...any) error {
		return core.Errorf(code, field+": "+format, args...).With("field", field).With("value", core.Clip(path))
	}
	if err == nil {
		return nil
	}
	code := core.AsError(err).Code
	switch {
	case store.IsFault(err):
		return fmt.Errorf("%s: %w", field, err)
	case safeopen.IsOwn(err):
		return say(core.Denied, "%s is one of the engine's own files", core.Clip(path))
	case code != core.Internal:
		return err
	case errors.Is(err, fs.ErrExist):
		return say(core.Conflict, "%s exists already", core.Clip(path))
	case errors.Is(err, fs.ErrNotExist):
		code = core.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = core.Denied
	}
	var why *fs.PathError
	if errors.As(err, &why) {
		err = why.Err
	}
	return say(code, "can't %s %s: %v", do, core.Clip(path), err)
}
