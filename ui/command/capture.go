package command

import (
	"bytes"
	"context"
	"fmt"
)

// MaxCapture bounds what Capture keeps of a command's output, in bytes.
const MaxCapture = 4 << 20

// Capture runs a line for a door without writers of its own and returns what
// it printed; errors are objects. A command that prints more than MaxCapture
// fails.
func Capture(ctx context.Context, env Env, args []string) (stdout, stderr string, code int) {
	var out, err bounded
	env.Stdout, env.Stderr, env.ErrorObjects = &out, &err, true
	code = Run(ctx, &env, args)
	return out.String(), err.String(), code
}

// bounded is a buffer that refuses to grow without end.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxCapture {
		return 0, fmt.Errorf("more than %d bytes", MaxCapture)
	}
	return b.Buffer.Write(p)
}
