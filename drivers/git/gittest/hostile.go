// Package gittest makes repositories that would run a program at every turn,
// for tests that show that none runs.
package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// Canary tells whether a program was run.
type Canary struct {
	t   testing.TB
	dir string
}

// NewCanary makes one; its programs lie in a directory of their own.
func NewCanary(t testing.TB) *Canary {
	t.Helper()
	c := &Canary{t, t.TempDir()}
	c.no(os.Mkdir(filepath.Join(c.dir, "ran"), 0o777))
	return c
}

func (c *Canary) no(err error) {
	c.t.Helper()
	expect.No(c.t, err)
}

// Dir is where it is all: what a cell must write for its programs to be heard.
func (c *Canary) Dir() string { return c.dir }

// Program is a program that leaves a mark under a name when it runs, and reads
// nothing.
func (c *Canary) Program(name string) string {
	c.t.Helper()
	name = regexp.MustCompile(`[^A-Za-z0-9.]`).ReplaceAllString(name, "_")
	path := filepath.Join(c.dir, name)
	c.no(os.WriteFile(path, []byte("#!/bin/sh\n: >"+filepath.Join(c.dir, "ran", name)+"\n"), 0o755))
	return path
}

// Ran are the programs that ran since the last call.
func (c *Canary) Ran() (names []string) {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.dir, "ran"))
	c.no(err)
	for _, e := range entries {
		names = append(names, e.Name())
		c.no(os.Remove(filepath.Join(c.dir, "ran", e.Name())))
	}
	return names
}

// running are the settings whose value is a program, by what git calls them.
// What has a placeholder is set for the names given here.
func running() map[string][]string {
	m := map[string][]string{
		"alias.*": {"alias.add", "alias.ls-tree", "alias.worktree", "alias.upload-pack"},
		"pager.<cmd>": {
			"pager.status", "pager.log", "pager.diff", "pager.branch", "pager.ls-files", "pager.for-each-ref",
		},
		"diff.<driver>.command": {"diff.x.command"}, "diff.<driver>.textconv": {"diff.x.textconv"},
		"difftool.<tool>.cmd": {"difftool.x.cmd"}, "difftool.<tool>.path": {"difftool.x.path"},
		"mergetool.<tool>.cmd": {"mergetool.x.cmd"}, "mergetool.<tool>.path": {"mergetool.x.path"},
		"filter.<driver>.clean": {"filter.x.clean"}, "filter.<driver>.smudge": {"filter.x.smudge"},
		"merge.<driver>.driver": {"merge.x.driver"}, "gpg.<format>.program": {"gpg.ssh.program", "gpg.x509.program", "gpg.openpgp.program"},
		"browser.<tool>.cmd": {"browser.x.cmd"}, "browser.<tool>.path": {"browser.x.path"},
		"man.<tool>.cmd": {"man.x.cmd"}, "man.<tool>.path": {"man.x.path"}, "guitool.<name>.cmd": {"guitool.x.cmd"},
		"remote.<name>.uploadpack": {"remote.origin.uploadpack"}, "remote.<name>.receivepack": {"remote.origin.receivepack"},
		"remote.<name>.proxy": {"remote.origin.proxy"}, "remote.<name>.vcs": {"remote.ext.vcs"},
		"trailer.<token>.command": {"trailer.x.command"}, "trailer.<token>.cmd": {"trailer.x.cmd"},
		"tar.<format>.command": {"tar.x.command"}, "submodule.<name>.update": {"submodule.x.update"},
		"credential.<url>.helper": {"credential.https://x.helper"}, "credential.<url>.*": {"credential.https://x.helper"},
		// What the list lacks.
		"filter.<driver>.process": {"filter.y.process"}, "core.fsmonitor": nil,
	}
	for _, name := range []string{
		"core.alternateRefsCommand", "core.askPass", "core.editor", "core.gitProxy", "core.pager", "core.sshCommand", "credential.helper", "diff.external",
		"diff.guitool", "diff.tool", "gpg.program", "gpg.ssh.defaultKeyCommand", "http.proxy", "interactive.diffFilter", "merge.guitool", "merge.tool",
		"sendemail.ccCmd", "sendemail.tocmd", "sequence.editor", "uploadpack.packObjectsHook", "imap.tunnel", "help.browser", "web.browser", "sendemail.smtpServer",
		"instaweb.browser", "instaweb.httpd", "core.fsmonitor", "sendemail.headerCmd", "sendemail.sendmailCmd", "imap.authMethod",
	} {
		m[name] = []string{name}
	}
	return m
}

// leading are settings that lead to files or directories with more of them.
func leading() []string {
	return []string{"core.hooksPath", "include.path", "includeIf.<condition>.path", "core.attributesFile", "core.excludesFile", "core.worktree", "init.templateDir"}
}

// harmless are settings that look as if they named a program, and name none.
func harmless() []string {
	return []string{
		"advice.ignoredHook", "advice.updateSparsePath", "core.quotePath", "advice.waitingForEditor", "clean.requireForce", "color.pager", "column.clean", "commit.cleanup", "completion.commands",
		"core.fsmonitorHookVersion", "credential.useHttpPath", "diff.<driver>.cachetextconv", "diff.<driver>.binary", "diff.<driver>.wordRegex", "diff.<driver>.xfuncname",
		"difftool.prompt", "difftool.trustExitCode", "fsck.gitmodulesPath", "fsck.fullPathname", "gitcvs.dbDriver", "help.htmlPath", "http.proxyAuthMethod",
		"http.proxySSLCAInfo", "http.proxySSLCert", "http.proxySSLCertPasswordProtected", "http.proxySSLKey", "http.sslCAPath", "instaweb.modulePath",
		"remote.<name>.proxyAuthMethod", "mergetool.<tool>.hideResolved", "mergetool.<tool>.trustExitCode", "mergetool.hideResolved", "mergetool.keepBackup",
		"mergetool.keepTemporaries", "mergetool.meld.hasOutput", "mergetool.meld.useAutoMerge", "mergetool.prompt", "mergetool.vimdiff.layout", "mergetool.writeToTemp",
		"merge.<driver>.name", "merge.<driver>.recursive", "notes.rewrite.<command>", "receive.fsck.gitmodulesPath", "fetch.fsck.gitmodulesPath",
		"sendemail.smtpsslcertpath", "core.commentChar", "advice.waitingForEditor", "gui.diffContext",
	}
}

var looks = `(?i)(cmd|command|helper|program|hook|textconv|driver>?|clean|smudge|process|editor|pager|askpass|proxy|tunnel|external|vcs|uploadpack|receivepack|browser|httpd|fsmonitor|path)$|^(alias|pager)\.|tool`

// Unsorted are the settings that the installed git lists, that look as if they
// run something and that are sorted here neither as running nor as harmless.
func Unsorted(t testing.TB) (names []string) {
	t.Helper()
	out, err := exec.Command("git", "help", "--config").Output()
	expect.No(t, err, "git help --config")
	like := regexp.MustCompile(looks)
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(name, ".") || !like.MatchString(name) || strings.HasPrefix(name, "guitool.") && !strings.HasSuffix(name, ".cmd") {
			continue
		}
		if running()[name] == nil && !slices.Contains(leading(), name) && !slices.Contains(harmless(), name) {
			names = append(names, name)
		}
	}
	return names
}

// Infest gives a repository every setting, hook and attribute that could run a
// program. gitDir is its git directory, tree where its files are.
func (c *Canary) Infest(gitDir, tree string) {
	c.t.Helper()
	config := filepath.Join(gitDir, "config")
	set := func(file, key, value string) {
		c.t.Helper()
		cmd := exec.Command("git", "config", "-f", file, "--add", key, value)
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("git config %s: %v %s", key, err, out)
		}
	}
	for _, names := range running() {
		for _, name := range names {
			value := c.Program(name)
			if strings.HasPrefix(name, "alias.") || name == "submodule.x.update" {
				value = "!" + value
			}
			set(config, name, value)
		}
	}
	more := filepath.Join(c.dir, "more")
	set(more, "core.fsmonitor", c.Program("include.path"))
	set(more, "diff.external", c.Program("include.path"))
	hooks := filepath.Join(c.dir, "hooks")
	for key, value := range map[string]string{
		"core.hooksPath": hooks, "include.path": more, "includeIf.gitdir:/**.path": more, "protocol.allow": "always", "protocol.ext.allow": "always",
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "commit.gpgSign": "true", "tag.gpgSign": "true",
		"remote.origin.url": "ext::" + c.Program("remote.origin.url"), "remote.origin.fetch": "+refs/*:refs/*", "filter.x.required": "true", "gc.auto": "1",
		"trace2.normalTarget": filepath.Join(c.dir, "ran", "trace2"), "trace2.eventTarget": filepath.Join(c.dir, "ran", "trace2"), "submodule.recurse": "true",
		"diff.ignoreSubmodules": "none", "core.untrackedCache": "true", "url.ext::sh.insteadOf": "https://", "receive.procReceiveRefs": "refs",
	} {
		set(config, key, value)
	}
	names := []string{
		"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "pre-auto-gc", "post-rewrite", "post-merge", "pre-push",
		"prepare-commit-msg", "commit-msg", "pre-rebase", "update", "pre-receive", "post-receive", "post-update", "proc-receive", "push-to-checkout",
		"fsmonitor-watchman", "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "sendemail-validate",
	}
	for _, dir := range []string{hooks, filepath.Join(gitDir, "hooks")} {
		c.no(os.MkdirAll(dir, 0o755))
		for _, name := range names {
			_ = os.Remove(filepath.Join(dir, name))
			c.no(os.Symlink(c.Program("hook."+name), filepath.Join(dir, name)))
		}
	}
	attributes := "* filter=x diff=x merge=x\n*.y filter=y\n"
	c.no(os.MkdirAll(filepath.Join(gitDir, "info"), 0o755))
	c.no(os.WriteFile(filepath.Join(gitDir, "info", "attributes"), []byte(attributes), 0o644))
	c.no(os.WriteFile(filepath.Join(tree, ".gitattributes"), []byte(attributes), 0o644))
	c.no(os.WriteFile(filepath.Join(tree, "a.y"), []byte("filtered by a process\n"), 0o644))
	c.no(os.WriteFile(filepath.Join(tree, ".gitmodules"), fmt.Appendf(nil, "[submodule \"x\"]\n\tpath = x\n\turl = ext::%s\n", c.Program("submodule.url")), 0o644))
}
