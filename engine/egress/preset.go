package egress

import "strings"

// preset is a name that stands for several hosts in a rule. Nothing of it is allowed
// unless a person says so: to publish to a registry is a way out for whatever an agent
// has read.
type preset struct {
	name, about string
	read        bool // a rule about it is about requests that read
	hosts       string
}

func presets() []preset {
	return []preset{
		{"npm", "packages of JavaScript", false, "registry.npmjs.org registry.yarnpkg.com"},
		{"pypi", "packages of Python", false, "files.pythonhosted.org pypi.org"},
		{"go", "modules of Go", false, "proxy.golang.org sum.golang.org"},
		{"crates", "packages of Rust", false, "crates.io index.crates.io static.crates.io"},
		{"debian", "packages of Debian", false, "deb.debian.org security.debian.org"},
		{"anthropic", "models of Anthropic, and the login of Claude Code", false, "api.anthropic.com claude.ai console.anthropic.com platform.claude.com"},
		{"openai", "models of OpenAI, and the login of Codex", false, "api.openai.com auth.openai.com chatgpt.com"},
		{"google", "models of Google, and the login of Gemini CLI", false, "cloudcode-pa.googleapis.com generativelanguage.googleapis.com oauth2.googleapis.com"},
		{"qwen", "models of Alibaba Cloud, and the login of Qwen Code", false, "chat.qwen.ai dashscope-intl.aliyuncs.com dashscope.aliyuncs.com portal.qwen.ai"},
		{"copilot", "GitHub Copilot", false, "*.githubcopilot.com api.github.com"},
		{"augment", "Augment", false, "*.api.augmentcode.com auth.augmentcode.com"},
		{"cline", "Cline", false, "api.cline.bot app.cline.bot"},
		{"opencode", "OpenCode", false, "models.dev opencode.ai"},
		{"kilo", "Kilo Code", false, "api.kilo.ai"},
		{"github-read", "fetches from GitHub, of agents that are inspected", true, "codeload.github.com github.com objects.githubusercontent.com raw.githubusercontent.com release-assets.githubusercontent.com"},
	}
}

// Presets are their names, with what each is about.
func Presets() (names, about []string) {
	for _, p := range presets() {
		names, about = append(names, p.name), append(about, p.about)
	}
	return names, about
}

// expand has a rule that names a preset say what that stands for.
func (r *Rule) expand() {
	for _, p := range presets() {
		if p.name != r.Host {
			continue
		}
		if r.Hosts = strings.Fields(p.hosts); p.read {
			r.Methods = ReadOnly()
		}
	}
}
