package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

const (
	left       = "\x1b[D"
	detach     = "\x1d"
	shiftPgUp  = "\x1b[5;2~"
	wheelUp    = "\x1b[<64;10;10M" // at the tenth column of the tenth line
	wheelDown  = "\x1b[<65;10;10M"
	wheelInner = `\[<64;9;8M` // the same place, as the program of a pane sees it
)

// shellAgent is an agent whose program is a shell that says when it is ready.
func (u *user) shellAgent() {
	u.t.Helper()
	for _, program := range []string{"bash", "vi", "less"} {
		if _, err := exec.LookPath(program); err != nil {
			u.t.Skip(program + " is not here")
		}
	}
	work := filepath.Join(u.home, "work")
	expect.No(u.t, os.Mkdir(work, 0o700))
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, "line %d.\n", i+1)
	}
	expect.No(u.t, os.WriteFile(filepath.Join(work, "lines.txt"), []byte(lines.String()), 0o600))
	u.ok("agent", "create", "shell", "--project", "demo", "--runtime", "terminal", "--dir", work, "--env", "PS1=ready$ ", "--", "bash", "--norc", "--noprofile", "-i")
}

// doors are how an operator comes to an agent's terminal: at the screen of the engine,
// of two sizes, and over SSH.
func doors(t *testing.T, do func(t *testing.T, u *user, s *seat, w, h int)) {
	for _, size := range []struct{ w, h int }{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size.w, size.h), func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			u.shellAgent()
			do(t, u, u.atTerminal().sit(size.w, size.h, "agent", "attach", "shell"), size.w, size.h)
		})
	}
	t.Run("over SSH", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("ssh"); err != nil {
			t.Skip("ssh is missing")
		}
		u := newUser(t)
		u.ok("tenant", "create", "t_acme")
		u.shellAgent()
		bob := u.daemon().client(1, "bob", "operator")
		args := append([]string{"-tt", "-o", "SendEnv=LANG"}, bob.args...)
		do(t, u, u.atTerminal().sitAt(100, 30, exec.Command("ssh", append(args, "agent attach shell")...)), 100, 30)
	})
}

func TestAnEditorAndAPagerWorkInAnAgentsTerminal(t *testing.T) {
	doors(t, func(t *testing.T, u *user, s *seat, w, h int) {
		s.see(`you type`)
		s.see(`ready\$`)

		// The editor: a screen of its own, text, cursor keys, and it saves.
		s.press("vi -u NONE -N note.txt\r")
		s.see(`│~ `)
		s.press("ihello")
		s.see(`│hello`)
		s.see(`INSERT`)
		s.press(esc)
		s.gone(`INSERT`)
		s.press(left + left + left + left + "iX")
		s.see(`│Xhello`)
		s.press(esc)
		s.gone(`INSERT`)
		s.press(":wq\r")
		expect.Await(t, "text that was saved", func() bool {
			text, _ := os.ReadFile(filepath.Join(u.home, "work", "note.txt"))
			return string(text) == "Xhello\n"
		})
		s.gone(`│~ `)
		s.see(`ready\$ vi`)

		// The pager: pages, the end, another size; the wheel is its arrows.
		s.press("less lines.txt\r")
		s.see(`│line 1\.`)
		s.press(" ")
		s.gone(`│line 1\.`)
		s.press("G")
		s.see(`│line 300\.`)
		s.resize(w+20, h+5)
		s.see(`│~ `) // it knows
		s.press("G")
		s.see(fmt.Sprintf(`│line %d\.`, 300-h+1)) // there is room for it now
		s.see(`│line 300\.`)
		s.press(wheelUp)
		s.gone(`│line 298\.`)
		s.see(`│line 297\.`)
		s.press("q")
		s.see(`ready\$ less`)
		s.press("stty size\r")
		s.see(fmt.Sprintf(`│%d %d `, h+5-4, w+20-2))

		// Let go, look back by key, and come back.
		s.press("seq 1000 1500\r")
		s.see(`│1500 `)
		s.press(shiftPgUp)
		s.see(`lines up .* you type`)
		s.press(detach)
		s.gone(`you type`)
		s.press("g")
		s.see(`│ready\$ vi`)
		s.press("q")
		s.see(`fleet`)
		s.press("1" + ">")
		s.see(`you type`)
		s.see(`│1500 `)
		s.press("echo back $((40+2))\r")
		s.see(`│back 42`)
		s.press(detach)
		s.gone(`you type`)
		expect.Is(t, s.leaves(), 0, "exit code")
	})
}

func TestTheWheelScrollsUnlessTheProgramAsksForTheMouse(t *testing.T) {
	doors(t, func(t *testing.T, _ *user, s *seat, _, _ int) {
		s.see(`you type`)
		s.see(`ready\$`)
		s.press("seq 1000 1500\r")
		s.see(`│1500 `)
		s.press(wheelUp)
		s.see(`3 lines up`)
		s.press("x") // who types sees what comes of it
		s.gone(`lines up`)
		s.see(`│ready\$ x`)
		s.press("\x7f" + wheelUp + wheelUp + wheelDown)
		s.see(`3 lines up`)
		s.press(wheelDown)
		s.gone(`lines up`)
		s.press(`printf '\033[?1000h\033[?1006hlis%s\n' tens; IFS= read -rsn 10 told; printf '\033[?1000l'; printf 'told %q\n' "$told"` + "\r")
		s.see(`│listens`)               // the picture in which the program has asked for the mouse
		s.rests(500 * time.Millisecond) // the shell has its terminal until read begins
		s.press(wheelUp)
		s.see(`│told .*` + wheelInner)
		s.press(wheelUp)
		s.see(`3 lines up`)
		s.press(detach)
		s.gone(`you type`)
		expect.Is(t, s.leaves(), 0, "exit code")
		out := s.output()
		on, off := strings.LastIndex(out, "\x1b[?1002h"), strings.LastIndex(out, "\x1b[?1002l")
		expect.True(t, on >= 0 && off >= on, "the mouse is not given back")
	})
}

func TestAHostileProgramChangesNothingOutsideItsPane(t *testing.T) {
	doors(t, func(t *testing.T, _ *user, s *seat, w, h int) {
		s.see(`you type`)
		s.see(`ready\$`)
		clean := regexp.MustCompile(`\x1b\][0-9]+;[^\a\x1b]*(pwned|52|aGVs)|pwned\a|\x1b\[8;1000|\x1b\[\?1003h|\x1b\[!p|\x1bc`)
		for _, said := range []string{
			`\033]52;c;aGVsbG8=\a`, `\033]0;pwned\a`, `\033]8;;http://pwned/\033\\link\033]8;;\033\\`, `\033[8;1000;1000t`, `\033[?1003h\033[?1003l`, `\033[?1004h`,
			`\033[?1049h\033[2J\033[?1049l`, `\033[?2004h\033[?2004l`, `\033[999;999Hxxxx`, `\033[1;999Hx\346\274`, `\033[H\033[999B\n\n`, `\033c\033[!p`, `\033P+q544e\033\\`, `\033[2;3r\033[r`, `\016lqk\017\033(0lqk\033(B`,
		} {
			s.press(`printf '` + said + `'; echo do''ne` + "\r")
			s.see(`done`)
			s.press("clear\r")
			s.gone(`done`)
		}
		s.press("echo still $((40+2))\r")
		s.see(`│still 42`)
		rows := strings.Split(s.screen(), "\n")
		if !strings.HasPrefix(rows[1], "┌") || !strings.HasPrefix(rows[h-2], "└") {
			t.Errorf("the frame is broken:\n%s", s.screen())
		}
		for _, row := range rows[2 : h-2] {
			r := []rune(row)
			expect.True(t, len(r) == w && r[0] == '│' && r[w-1] == '│', "the frame is broken at %q", row)
		}
		expect.Is(t, clean.FindString(s.output()), "", "reaches the operator's terminal")
		s.press(detach)
		s.gone(`you type`)
		expect.Is(t, s.leaves(), 0, "exit code")
	})
}
