package coder

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// settings are the options of an agent of this runtime.
type settings struct {
	// URL is the deployment's address, without a path. It must be given.
	URL string `json:"url"`
	// TokenEnv names the variable of the engine's environment with the API
	// token; "" means CODER_SESSION_TOKEN. TokenFile is a file with it instead,
	// which is read at every call, so that a token can be replaced.
	TokenEnv  string `json:"token_env,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// Template is the template's name where the project is not its display
	// name, or where two templates have the same one.
	Template string `json:"template,omitempty"`
	// AppSlug is the app that serves agentapi; "" means the Task's own app,
	// else the workspace's only app, else ccw.
	AppSlug string `json:"app_slug,omitempty"`
	// Interrupt is the key that stops the agent's work: "esc", the default, or
	// "ctrl-c".
	Interrupt string `json:"interrupt,omitempty" allow:"none or esc, ctrl-c"`
	// Via says how the agent is made: "workspace", the default, or "task" for
	// a Task, which needs a template with coder_ai_task.
	Via string `json:"via,omitempty" allow:"none or workspace, task"`
	// Greeting is the ai_prompt of a new agent whose template can't do without
	// one. Its tasks are given to it afterwards.
	Greeting string `json:"greeting,omitempty"`
	// Parameters are further parameters of the template.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Adopt takes over a workspace of the agent's name that is there already.
	// It is deleted with the agent.
	Adopt bool `json:"adopt,omitzero"`
	// LeaveAlone keeps no stream of the agent's conversation open between its tasks: what
	// somebody gives it on Coder's own page shows only where it reports that to Coder.
	LeaveAlone bool `json:"leave_alone,omitzero"`
}

const (
	defaultTokenEnv = "CODER_SESSION_TOKEN"
	defaultSlug     = "ccw"
	defaultGreeting = "Wait for your first task."
	maxToken        = 4096
)

var (
	// Coder's rule for names; at most 32 characters, and not these two.
	workspaceName = core.Pattern(`^[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*$`)
	slugPattern   = core.Pattern(`^[a-z0-9](-?[a-z0-9])*$`)
	envPattern    = core.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reservedNames = map[string]bool{"new": true, "create": true}
)

func checkName(name string) error {
	if !workspaceName().MatchString(name) || reservedNames[strings.ToLower(name)] {
		return core.Invalid("name", name, "letters and digits with single hyphens between them, not new or create")
	}
	return nil
}

func readSettings(options core.Raw) (settings, error) {
	var s settings
	if len(options) > 0 {
		if err := core.Decode(options, &s); err != nil {
			return s, fmt.Errorf("options: %w", err)
		}
	}
	if _, err := s.address(); err != nil {
		return s, err
	}
	if err := bound.CheckIn("options.", &s); err != nil {
		return s, err
	}
	switch {
	case s.TokenEnv != "" && s.TokenFile != "":
		return s, core.Invalid("options.token_file", s.TokenFile, "not beside options.token_env")
	case s.TokenEnv != "" && !envPattern().MatchString(s.TokenEnv):
		return s, core.Invalid("options.token_env", s.TokenEnv, "the name of a variable, not the token")
	case s.TokenFile != "" && !filepath.IsAbs(s.TokenFile):
		return s, core.Invalid("options.token_file", s.TokenFile, "an absolute path")
	case s.AppSlug != "" && (len(s.AppSlug) > 64 || !slugPattern().MatchString(s.AppSlug)):
		return s, core.Invalid("options.app_slug", s.AppSlug, "lower-case letters and digits with single hyphens between them")
	}
	for _, name := range []string{promptParameter, systemParameter} {
		if _, given := s.Parameters[name]; given {
			return s, core.Invalid("options.parameters", name, "other parameters: tasks and the role say this one")
		}
	}
	return s, nil
}

// Reach implements fleet.Homely: the engine's token goes to the URL.
func (*Runtime) Reach(options core.Raw) (places, secrets []string) {
	var s settings
	if core.DecodeStored(options, &s) != nil {
		return nil, nil
	}
	if s.TokenFile != "" {
		places = append(places, "token_file")
	}
	if s.TokenEnv != "" {
		secrets = append(secrets, "token_env")
	}
	if s.URL != "" {
		secrets = append(secrets, "url")
	}
	return places, secrets
}

// address is the deployment's URL. A path would be dropped by every call, so
// there can be none.
func (s settings) address() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		shown := s.URL
		if u != nil && u.User != nil {
			shown = u.Redacted()
		}
		return nil, core.Invalid("options.url", shown, "http(s)://host[:port] and nothing after it")
	}
	u.Path = ""
	return u, nil
}

// token reads the API token.
func (s settings) token() (string, error) {
	name := cmp.Or(s.TokenEnv, defaultTokenEnv)
	token, from := os.Getenv(name), "the variable "+name
	if s.TokenFile != "" {
		info, err := os.Stat(s.TokenFile)
		if err == nil && info.Size() > maxToken {
			err = fmt.Errorf("%d bytes are no token", info.Size())
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(s.TokenFile)
		}
		if err != nil {
			return "", badToken("can't be read: %v", err)
		}
		token, from = strings.TrimSpace(string(data)), s.TokenFile
	}
	if token == "" {
		return "", badToken("%s holds no token", from)
	}
	if len(token) > maxToken || strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return "", badToken("what %s holds can't be a token", from)
	}
	return token, nil
}

func badToken(format string, args ...any) error {
	return core.Errorf(core.Unavailable, "token: "+format, args...).With("field", "token")
}

func (s settings) greeting() string { return cmp.Or(s.Greeting, defaultGreeting) }

// key is the same for agents that reach the same deployment as the same user.
func (s settings) key() string { return s.URL + "\x00" + s.TokenEnv + "\x00" + s.TokenFile }

func (s settings) interruptKey() string {
	if s.Interrupt == "ctrl-c" {
		return "\x03"
	}
	return "\x1b"
}

// check reports what a Coder agent can't be given.
func check(c fleet.Create) error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	if len(c.Command) > 0 {
		return core.Invalid("command", strings.Join(c.Command, " "), "none: the template says what runs in a workspace")
	}
	if len(c.Env) > 0 {
		return core.Invalid("env", fmt.Sprintf("%d variables", len(c.Env)), "none: the template says what is set in a workspace")
	}
	_, err := readSettings(c.Options)
	return err
}
