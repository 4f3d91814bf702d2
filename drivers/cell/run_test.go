package cell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// refusing takes nothing.
type refusing struct{ error }

func (r refusing) Write([]byte) (int, error) { return 0, r.error }
func (r refusing) Read([]byte) (int, error)  { return 0, r.error }

func TestARunIsFedReadAndOver(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		spec := Spec{Run: "run", Dir: t.TempDir(), Wall: Wall{Profile: Open}}
		do := func(ctx context.Context, script string, in io.Reader, out io.Writer) (Exit, string, error) {
			spec.Argv = sh(script)
			var errs bytes.Buffer
			exit, err := s.Run(ctx, spec, in, out, &errs)
			return exit, errs.String(), err
		}
		big := strings.Repeat("0123456789abcdef", 1<<16)
		var out bytes.Buffer
		if exit, said, err := do(t.Context(), "cat; echo no >&2; sleep 100 & exit 3", strings.NewReader(big), &out); err != nil || exit.Code != 3 || said != "no\n" || out.String() != big {
			t.Errorf("%+v %q %v, %d bytes", exit, said, err, out.Len())
		}
		if exit, _, err := do(t.Context(), "exit 0", strings.NewReader(big), nil); err != nil || exit.Code != 0 { // reads nothing
			t.Errorf("%+v %v", exit, err)
		}
		if exit, said, err := do(t.Context(), "cat >&2", nil, nil); err != nil || exit.Code != 0 || said != "" {
			t.Errorf("%+v %q %v", exit, said, err)
		}
		full := errors.New("full")
		_, _, err := do(t.Context(), "yes", nil, refusing{full})
		expect.Err(t, err, full, "an error of a writer")
		_, _, err = do(t.Context(), "cat; sleep 100", refusing{full}, nil)
		expect.Err(t, err, full, "an error of the input")
		ctx, give := context.WithCancelCause(t.Context())
		r, w := io.Pipe()
		go func() {
			_, _ = io.ReadFull(r, make([]byte, 2)) // it runs
			give(full)
			_, _ = io.Copy(io.Discard, r)
		}()
		_, _, err = do(ctx, `trap "" INT TERM; while :; do echo y; sleep 100; done`, nil, w)
		expect.Err(t, err, full, "an end")
		w.Close()
		spec.Argv = []string{"no-such-program"}
		_, err = s.Run(t.Context(), spec, nil, nil, nil)
		expect.True(t, NotFound(err, "no-such-program"), "%v", err)
	})
}
