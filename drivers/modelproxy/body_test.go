package modelproxy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"swarmdeck/expect"
)

func TestTheLastByteIsHandedOnAfterTheEndWasTold(t *testing.T) {
	broken := errors.New("broken")
	for name, from := range map[string]func(io.Reader) io.Reader{
		"at once":              func(r io.Reader) io.Reader { return r },
		"byte by byte":         iotest.OneByteReader,
		"by halves":            iotest.HalfReader,
		"its end with it":      iotest.DataErrReader,
		"byte by byte, ending": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
		"broken":               func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) },
	} {
		for _, text := range []string{"", "x", "xy", "a body of some bytes"} {
			for _, known := range []bool{true, false} {
				for _, room := range []int{1, 2, 3, 7, 64} {
					t.Run(fmt.Sprint(name, len(text), known, room), func(t *testing.T) {
						var got, saw strings.Builder
						told := 0
						b := &body{from: io.NopCloser(from(strings.NewReader(text))), size: -1, late: !known}
						if known {
							b.size = int64(len(text))
						}
						b.saw = func(p []byte) { saw.Write(p) }
						b.end = func(error) {
							told++
							expect.True(t, len(text) == 0 || got.Len() < len(text), "%q was handed on before", got.String())
						}
						buf := make([]byte, room)
						var err error
						for err == nil {
							var n int
							n, err = b.Read(buf)
							got.Write(buf[:n])
						}
						want := io.EOF
						if name == "broken" && (!known || text == "") {
							want = broken
						}
						expect.True(t, got.String() == text && saw.String() == text && told == 1 && errors.Is(err, want),
							"%q is handed on, %q was seen, its end told %d times: %v", got.String(), saw.String(), told, err)
						n, again := b.Read(buf)
						expect.True(t, n == 0 && errors.Is(again, want), "after that: %d %v", n, again)
					})
				}
			}
		}
	}
}

func TestWhatIsHeldIsHandedOnAtOnceWhenItIsLetGo(t *testing.T) {
	const text = "one (two three) four (five six seven eight) nine (ten"
	saw, told := "", false
	b := &body{from: io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), size: -1, end: func(error) { told = true }}
	b.saw = func(p []byte) { saw += string(p) }
	b.holds = func(size int) bool { return strings.LastIndex(saw, "(") > strings.LastIndex(saw, ")") && size <= 16 }
	got, held := "", []string(nil)
	buf := make([]byte, 64)
	for {
		n, err := b.Read(buf)
		if got += string(buf[:n]); n > 1 {
			held = append(held, string(buf[:n]))
		}
		if err != nil {
			break
		}
	}
	want := []string{"(two three)", "(five six seven e", "ight)", "(ten"}
	expect.True(t, got == text && told && slices.Equal(held, want), "%q, of it at once %q, its end told: %v", got, held, told)
}
