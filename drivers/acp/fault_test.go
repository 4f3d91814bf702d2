package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAnAnswerThatIsTooLongEndsThePromptAndNotUs(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	out := s.ends(task.Failed, "agent_killed", "say before", "huge", "hang")
	expect.Has(t, out.Error.Message, "at most 10485760", "message")
	expect.Await(t, "it is idle again", func() bool { return s.now().Status == fleet.Idle })
	s.ends(task.Succeeded, "", "say next")
}

func TestACrashKeepsWhatWasSaid(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	out := s.ends(task.Failed, "agent_killed", "flood 500", "crash")
	n := len(s.texts("message"))
	expect.True(t, n == 500 && strings.Contains(out.Error.Message, "was ended by SIGKILL"), "%d messages, error %q", n, out.Error.Message)
}

func TestAnAgentThatCantBeUsedSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name    string
		as      traits
		options settings
		code    string
		message string
	}{
		{"another protocol", traits{Version: 2}, settings{}, "agent_start", "speaks version 2 of the protocol, this runtime 1"},
		{"no answer to the greeting", traits{Mute: "initialize"}, settings{}, "agent_start", "no answer within"},
		{"no answer to a new session", traits{Mute: "session/new"}, settings{}, "agent_start", "no answer within"},
		{"a login", traits{Login: "key"}, settings{}, "agent_start", "set options.auth to one of key (a login)"},
		{"an unknown login", traits{Login: "key"}, settings{Auth: "face"}, "agent_start", `options.auth: "face" is not allowed; allowed: one of key (a login)`},
		{"no mode chosen", traits{Modes: []string{"ask", "auto"}}, settings{}, "agent_start", "one of these, and one in which it asks: ask (Mode ask), auto (Mode auto)"},
		{"an unknown mode", traits{Modes: []string{"ask"}}, settings{Mode: "yolo"}, "agent_start", "it asks: ask (Mode ask)"},
		{"a mode that does not stay", traits{Modes: []string{"ask", "auto"}, SlyMode: "sly"}, settings{Mode: "ask"}, "agent_start", "went into mode sly although ask was set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := fakeAgent(t, c.as, c.options)
			patience := 2 * time.Minute
			if c.as.Mute != "" {
				patience = time.Second
			}
			s := open(t, newRuntime(t, Options{Patience: patience}), a)
			out := s.ends(task.Failed, c.code, "say hello")
			expect.Has(t, out.Error.Message, c.message, "message")
		})
	}
}

func TestALoginIsDoneAtEachStart(t *testing.T) {
	s, _ := newStand(t, traits{Login: "key"}, settings{Auth: "key"})
	s.ends(task.Succeeded, "", "say in")
	s.ends(task.Failed, "agent_killed", "crash")
	s.ends(task.Succeeded, "", "say in again")
}

func TestAChangeOfModeIsReportedAndUndone(t *testing.T) {
	s, _ := newStand(t, traits{Modes: []string{"auto", "ask"}}, settings{Mode: "ask"})
	s.ends(task.Succeeded, "", `raw {"sessionUpdate":"current_mode_update","currentModeId":"auto"}`, "say on")
	got := s.of("mode")
	expect.Must(t, len(got) == 1 && got[0].Status == "weaker" && string(got[0].Args) == `{"mode":"auto","wanted":"ask"}`, "events %+v", got)
	s.forget()
	s.ends(task.Succeeded, "", "say again")
	got = s.of("mode")
	expect.True(t, len(got) == 0, "events %+v after the mode was set again", got)
}

func TestWhatHappensBetweenPromptsIsReportedWithTheNext(t *testing.T) {
	s, dir := newStand(t, traits{Modes: []string{"ask", "auto"}}, settings{Mode: "ask"})
	mode, usage := filepath.Join(dir, "mode"), filepath.Join(dir, "usage")
	for _, pipe := range []string{mode, usage} {
		expect.No(t, unix.Mkfifo(pipe, 0o600))
	}
	s.ends(task.Succeeded, "", "later "+mode+` {"sessionUpdate":"current_mode_update","currentModeId":"auto"}`,
		"later "+usage+` {"sessionUpdate":"usage_update","cost":{"amount":0.5,"currency":"USD"}}`)
	for _, pipe := range []string{mode, usage} {
		expect.No(t, os.WriteFile(pipe, []byte("now"), 0o600))
	}
	expect.Await(t, "the updates have come", func() bool {
		a := s.handle.(*agent)
		a.Mu.Lock()
		defer a.Mu.Unlock()
		return len(a.news) == 2
	})
	s.forget()
	s.ends(task.Succeeded, "", "say on")
	got := s.of("mode")
	expect.True(t, len(got) == 1 && got[0].Status == "weaker", "modes %+v", got)
	got = s.of("usage")
	expect.True(t, len(got) == 1 && got[0].CostUSD == 0.5, "usage %+v", got)
}

func TestAModeOutOfNowhereIsReported(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	setting := `raw {"sessionUpdate":"config_option_update","configOptions":[{"id":"m","category":"mode","currentValue":"auto","options":[]}]}`
	s.ends(task.Succeeded, "", setting, setting, "say on")
	got := s.of("mode")
	expect.True(t, len(got) == 1 && got[0].Status == "weaker" && string(got[0].Args) == `{"mode":"auto","wanted":""}`, "events %+v", got)
}

func TestAConversationIsTakenUpWithoutRepeatingIt(t *testing.T) {
	for _, as := range []traits{{Load: true}, {Resume: true, Load: true}} {
		s, _ := newStand(t, as, settings{})
		s.ends(task.Succeeded, "", "say one", "say two", "say three")
		id := s.handle.(*agent).place.recall().Session
		s.ends(task.Failed, "agent_killed", "crash")
		s.forget()
		s.ends(task.Succeeded, "", "say four")
		expect.Is(t, strings.Join(s.texts("message"), "|"), "four", "messages")
		expect.Is(t, s.handle.(*agent).place.recall().Session, id, "session")
		s.heard("log", "took up the conversation "+id)
	}
}

func TestAConversationOutlivesTheEngineButNotTheAgent(t *testing.T) {
	r := newRuntime(t, Options{})
	a := fakeAgent(t, traits{Resume: true}, settings{})
	first := open(t, r, a)
	first.ends(task.Succeeded, "", "say one")
	expect.No(t, first.handle.Close())
	again := open(t, r, a)
	again.ends(task.Succeeded, "", "say two")
	again.heard("log", "took up the conversation")
	expect.No(t, again.handle.Close())
	a.CreatedAt = time.Now() // deleted, and made again by the same name
	other := open(t, r, a)
	other.ends(task.Succeeded, "", "say three")
	expect.True(t, len(other.texts("log")) == 0, "a new agent took up an old conversation: %q", other.texts("log"))
}

func TestALostConversationIsBegunAnew(t *testing.T) {
	s, _ := newStand(t, traits{Load: true}, settings{})
	s.ends(task.Succeeded, "", "say one")
	p := s.handle.(*agent).place
	id := p.recall().Session
	expect.No(t, os.Remove(filepath.Join(p.Home.Path, id)))
	s.ends(task.Failed, "agent_killed", "crash")
	s.ends(task.Succeeded, "", "say two")
	s.heard("log", "the earlier conversation could not be taken up")
}

func TestOptionsAreChecked(t *testing.T) {
	r := newRuntime(t, Options{})
	for options, field := range map[string]string{
		`{"fs":"all"}`: "options.fs", `{"home":"here"}`: "options.home", `{"skeleton":"/nonexistent"}`: "options.skeleton",
		`{"user":"nobody-of-that-name"}`: "options.user", `{"colour":"red"}`: "colour", `{"mode":1}`: "mode",
	} {
		err := r.Check(fleet.Create{Name: "a", Command: []string{"true"}, Options: core.Raw(options)})
		expect.True(t, err != nil && strings.Contains(err.Error(), field), "%s: %v, want one about %s", options, err, field)
	}
	expect.Fails(t, r.Check(fleet.Create{Name: "a", Command: []string{"no-such-program"}}), "a command that is not there was accepted")
}
