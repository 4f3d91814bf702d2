package reach

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// secrets are what people keep in their homes and no program needs that they
// did not give it to. A name that ends in "*" stands for all that begin so.
var secrets = [...]string{
	".ssh", ".gnupg", ".pki", ".netrc", ".git-credentials", ".config/git/credentials", ".password-store", ".vault-token", ".config/op", ".config/sops", ".config/age",
	".aws", ".azure", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".kube", ".docker/config.json", ".config/containers/auth.json",
	".config/doctl", ".config/heroku", ".config/netlify", ".fly", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".oci", ".s3cfg", ".config/rclone", ".boto",
	".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".cargo/credentials*", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".nuget",
	".pgpass", ".my.cnf", ".mylogin.cnf", ".config/keybase", ".local/share/keyrings", ".config/Bitwarden*", ".config/1Password", ".electrum", ".bitcoin", ".ethereum",
	".codex", ".claude", ".claude.json*", ".gemini", ".qwen", ".config/opencode", ".local/share/opencode", ".config/github-copilot", ".cursor", ".config/anthropic",
	".copilot", ".config/goose", ".config/amp", ".config/crush", ".local/share/crush", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface", ".kaggle", ".config/wandb",
	".authinfo*", ".dockercfg", ".msmtprc", ".fetchmailrc", ".smbcredentials", ".rclone.conf", ".netlify", ".local/share/com.vercel.cli", ".config/configstore", ".config/Code", ".config/Cursor",
	".*_history", ".histfile", ".zhistory", ".local/share/fish/fish_history", ".config/fish/fish_history", ".lesshst", ".viminfo", ".wget-hsts", ".sqlite_history",
	".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge*", ".config/vivaldi*", ".config/opera", ".cache/mozilla",
	".librewolf", ".waterfox", ".zen", "snap/firefox", "snap/chromium", ".var/app",
	".config/Slack", ".config/discord", ".config/Signal", ".config/coderv2", ".config/sourcegraph*", ".Xauthority", ".ICEauthority", ".local/share/swarmdeck",
}

// homes are those whose secrets a run in a directory does not see: the engine's
// own, by its environment and by its user, and that of whom the directory is,
// who is another where the engine is root.
func homes(dir string) (all []string) {
	add := func(home string, err error) {
		if err == nil && filepath.IsAbs(home) && home != "/" && !slices.Contains(all, home) {
			all = append(all, home)
		}
	}
	add(os.UserHomeDir())
	users := []int{os.Geteuid()}
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != users[0] {
			users = append(users, int(st.Uid))
		}
	}
	for _, uid := range users {
		if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
			add(u.HomeDir, nil)
		}
	}
	return all
}

// Hidden lists what no walled run in a directory sees: what people keep in their
// homes, and more names. Links are listed with what they lead to.
func Hidden(dir string, more ...string) (all []string) {
	more = slices.Clone(more)
	for _, home := range homes(dir) {
		for _, name := range secrets {
			more = append(more, filepath.Join(home, name))
		}
	}
	for _, name := range more {
		for _, path := range Matches(name) {
			all = append(all, path)
			if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
				all = append(all, real)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Matches are the paths that a name stands for. One "*" in its last part is
// for any characters.
func Matches(name string) []string {
	dir, last := filepath.Split(name)
	before, after, star := strings.Cut(last, "*")
	if !star {
		return []string{name}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if n := e.Name(); len(n) >= len(before)+len(after) && strings.HasPrefix(n, before) && strings.HasSuffix(n, after) {
			all = append(all, filepath.Join(dir, n))
		}
	}
	return all
}
