package serve

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/expect"
)

// TestAClientThatAnswersLateIsNeverFarBehind has a link of 300 ms and looks how
// much is under way when as much is written as may be.
func TestAClientThatAnswersLateIsNeverFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(io.Discard, func() bool { time.Sleep(300 * time.Millisecond); return true })
		frame := make([]byte, 1500)
		wrote := 0
		for range 100 { // 10 s of frames
			if !p.Full() {
				_, _ = p.Write(frame)
				wrote++
			}
			p.mu.Lock()
			under := p.sent - p.taken
			p.mu.Unlock()
			expect.Must(t, under <= ahead+uint64(len(frame)), "%d bytes are under way", under)
			time.Sleep(100 * time.Millisecond)
		}
		expect.True(t, wrote >= 40, "%d frames in 10 s", wrote)
		for p.Full() {
			<-p.room
		}
		time.Sleep(time.Minute) // for who still asks
	})
}

func TestAClientThatNeverAnswersGetsEveryFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		p := newPace(io.Discard, func() bool { <-ended; return false })
		_, _ = p.Write(make([]byte, ahead))
		expect.True(t, p.Full(), "it is not waited for")
		<-p.room
		expect.True(t, !p.Full(), "it is waited for after a while")
		close(ended)
		time.Sleep(time.Minute)
	})
}

func TestWhatAClientSaysOfItselfIsBelievedWithinReason(t *testing.T) {
	p := newPace(io.Discard, nil)
	_, _ = p.Write(make([]byte, near))
	for _, n := range []uint64{0, near + 1, 1 << 63} {
		p.tookTo(n)
		expect.True(t, p.Full(), "%d of %d counts", n, near)
	}
	p.tookTo(near)
	expect.True(t, !p.Full(), "what it took does not count")
}

// TestATerminalBehindAnSSHDIsAskedItself has one that draws 3 kB in 300 ms and
// one that answers nothing.
func TestATerminalBehindAnSSHDIsAskedItself(t *testing.T) {
	for name, answers := range map[string]bool{"answers": true, "is mute": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys, typed := io.Pipe()
				r := &replies{Reader: keys, came: make(chan struct{}, 1)}
				var seen bytes.Buffer
				go func() { _, _ = io.Copy(&seen, r) }()
				var p *pace
				screen := writes(func(b []byte) {
					if answers && string(b) == "\x1b[5n" {
						time.AfterFunc(300*time.Millisecond, func() { _, _ = typed.Write([]byte("a\x1b[0nb")) })
					}
				})
				p = newPace(screen, func() bool { return r.question(t.Context(), p) })
				frame, wrote := make([]byte, 3000), 0
				for range 300 { // 30 s of frames
					if !p.Full() {
						_, _ = p.Write(frame)
						wrote++
					}
					p.mu.Lock()
					under := p.sent - p.taken
					p.mu.Unlock()
					expect.Must(t, !answers || under <= ahead+uint64(len(frame)), "%d bytes are under way", under)
					time.Sleep(100 * time.Millisecond)
				}
				if answers && wrote < 100 || !answers && wrote < 190 { // which is waited for once
					t.Errorf("%d frames in 30 s", wrote)
				}
				time.Sleep(time.Minute)
				_ = typed.Close()
				synctest.Wait()
				text := seen.String()
				expect.True(t, (!answers || strings.HasPrefix(text, "abab")) && !strings.Contains(text, "\x1b"), "its input is %.20q", text)
			})
		})
	}
}

type writes func([]byte)

func (w writes) Write(b []byte) (int, error) { w(b); return len(b), nil }
