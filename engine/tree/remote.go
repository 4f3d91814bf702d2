package tree

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

const maxRemotes = 20 // of a project

var (
	remoteName = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	remoteUser = core.Pattern(`^([A-Za-z0-9_][A-Za-z0-9._-]*)?$`)
	remoteHost = core.Pattern(`^([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\])$`)
	remotePath = core.Pattern(`^/?[A-Za-z0-9~_.][A-Za-z0-9~._/+%@=,-]*$`)
)

// Place is where a remote leads: another machine, by git's https or ssh, or a directory
// of this one, by the scheme file.
type Place struct{ Scheme, User, Host, Port, Path string }

// Here reports a place of this machine.
func (p Place) Here() bool { return p.Scheme == "file" }

// ReadRemote reads where a push may go. What runs another program than git's own, as
// ext:: does, is refused by its name.
func ReadRemote(text string) (at Place, err error) {
	refused := func(what string) (Place, error) {
		return Place{}, core.Invalid("url", text, "https://HOST/PATH, ssh://[USER@]HOST[:PORT]/PATH, [USER@]HOST:PATH, or /PATH of this machine; not "+what)
	}
	head, path, scp := strings.Cut(text, ":")
	switch {
	case strings.HasPrefix(path, ":"):
		return refused(core.Clip(head) + "::, which runs a helper")
	case len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return refused("more than 1000 bytes, nor any but printable ones of ASCII")
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "file:///"):
		at = Place{Scheme: "file", Path: strings.TrimPrefix(text, "file://")}
		if at.Path != filepath.Clean(at.Path) || !remotePath().MatchString(at.Path) {
			return refused("this path")
		}
		return at, nil
	case strings.Contains(text, "://"):
		u, bad := url.Parse(text)
		if bad != nil {
			return refused("what is no URL")
		}
		at = Place{u.Scheme, u.User.Username(), u.Hostname(), u.Port(), u.EscapedPath()}
		if strings.Contains(at.Host, ":") {
			at.Host = "[" + at.Host + "]"
		}
		_, secret := u.User.Password()
		switch {
		case at.Scheme != "https" && at.Scheme != "ssh":
			return refused(at.Scheme + ":")
		case secret:
			return refused("a URL with a password, which git's credential helper keeps")
		case u.RawQuery != "" || u.Fragment != "" || len(at.Path) < 2:
			return refused("a URL without a path, or with more than that")
		}
	case !scp || head == "file" || strings.Contains(head, "/"):
		return refused("a path that does not begin with /")
	default:
		at = Place{Scheme: "ssh", Host: head, Path: path}
		if user, host, has := strings.Cut(head, "@"); has {
			at.User, at.Host = user, host
		}
	}
	switch {
	case !remoteUser().MatchString(at.User):
		return refused("this user")
	case !remoteHost().MatchString(at.Host):
		return refused("this host")
	case !remotePath().MatchString(at.Path) || slices.Contains(strings.Split(at.Path, "/"), ".."):
		return refused("this path")
	}
	return at, nil
}

// String is what a card shows: scheme, host and path.
func (p Place) String() string {
	host := p.Host
	if p.Here() {
		host = "this machine"
	}
	if p.User != "" {
		host = p.User + "@" + host
	}
	if p.Port != "" {
		host += ":" + p.Port
	}
	return p.Scheme + ", host " + host + ", path " + p.Path
}

// Web is its address on the web, as the programs of forges name a repository.
func (p Place) Web() string {
	return "https://" + p.Host + "/" + strings.TrimPrefix(strings.TrimSuffix(p.Path, ".git"), "/")
}

// PutRemote registers where a remote of a project leads; "" takes it away.
func (s *Trees) PutRemote(ctx context.Context, by core.Caller, project, name, url string) (Checks, error) {
	if !remoteName().MatchString(name) {
		return Checks{}, core.Invalid("name", name, "a name of 1-64 of A-Z a-z 0-9 . _ -, of which the first is a letter or digit")
	}
	if url == "" && s.ChecksOf(by.Tenant, project).Remotes[name] == "" {
		return Checks{}, unregistered(project, name)
	}
	if url != "" {
		at, err := ReadRemote(url)
		if err == nil && at.Here() && (by.Kind != core.Operator || by.Far) {
			err = core.Invalid("url", url, "https or ssh: who sits at this machine alone can name a path of it")
		}
		if err != nil {
			return Checks{}, err
		}
	}
	if n := len(s.ChecksOf(by.Tenant, project).Remotes); url != "" && n >= maxRemotes {
		return Checks{}, core.Invalid("name", name, fmt.Sprintf("at most %d remotes of a project", maxRemotes))
	}
	out, _, err := s.putProject(ctx, by, project, "project.remote", func(c *Checks) {
		c.Remotes = maps.Clone(c.Remotes)
		if url == "" {
			delete(c.Remotes, name)
			return
		}
		if c.Remotes == nil {
			c.Remotes = map[string]string{}
		}
		c.Remotes[name] = url
	})
	return out, err
}

func unregistered(project, name string) error {
	return core.Errorf(core.NotFound, "remote: %q is no registered remote of project %s, and what its repository's configuration says is not read, since an agent may have written it; "+
		"a person registers it: project remote %s %s URL", core.Clip(name), project, project, core.Clip(name)).With("field", "remote").With("value", core.Clip(name))
}

// remote is where a remote of a tree's project leads.
func (s *Trees) remote(t Tree, name string) (url string, err error) {
	if t.Kind != Git {
		return "", core.Errorf(core.Conflict, "agent: the tree of %s is of no git repository: there is nothing to push", t.Agent).With("field", "agent")
	}
	project := s.opt.project(t.TenantID, t.Agent)
	if url = s.ChecksOf(t.TenantID, project).Remotes[name]; url == "" {
		return "", unregistered(project, name)
	}
	return url, nil
}
