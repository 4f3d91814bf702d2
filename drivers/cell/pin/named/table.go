package named

import (
	"path"
	"slices"
	"strings"
)

// tool is what is known of a program that reads files nobody has to name, or
// that runs what one of its arguments holds.
type tool struct {
	names []string
	// script says that its first operand that is a file is what it runs.
	script bool
	// shell says that the operand after -c is shell text.
	shell bool
	// wraps says that a command line follows among its own arguments.
	wraps bool
	// reads are the files it reads by itself, in its directory and in each
	// directory that an argument names. * matches as in path.Match.
	reads []string
	// writes are the first operands under which it writes those files too.
	writes []string
}

// tools is the one table of well-known programs.
func tools() []tool {
	node := []string{"", "install", "i", "ci", "add", "remove", "rm", "uninstall", "update", "up", "upgrade", "init", "version", "link", "dedupe"}
	return []tool{
		{names: []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"}, script: true, shell: true},
		{names: []string{"python", "pypy", "node", "nodejs", "deno", "tsx", "ts-node", "ruby", "perl", "php", "lua", "luajit", "Rscript", "julia", "tclsh", "expect", "groovy", "osascript", "pwsh", "guile", "uv"}, script: true},
		{names: []string{"env", "nice", "nohup", "timeout", "time", "sudo", "doas", "su", "setsid", "stdbuf", "ionice", "chrt", "taskset", "xargs", "find", "exec", "command", "builtin", "busybox", "flock", "watch", "strace", "ltrace", "unshare", "parallel", "script", "entr", "poetry", "pipenv", "pipx"}, wraps: true},
		{names: []string{"make", "gmake"}, reads: []string{"GNUmakefile", "makefile", "Makefile"}},
		{names: []string{"just"}, reads: []string{"justfile", "Justfile", ".justfile"}},
		{names: []string{"task"}, reads: []string{"Taskfile.y*ml", "taskfile.y*ml"}},
		{names: []string{"npm", "npx", "yarn", "pnpm", "bun", "bunx"}, script: true, reads: []string{"package.json", ".npmrc", ".yarnrc.yml"}, writes: node},
		{names: []string{"go"}, reads: []string{"go.mod", "*.go"}, writes: []string{"fmt", "fix", "get", "mod", "work"}},
		{names: []string{"cargo"}, reads: []string{"Cargo.toml", "build.rs", ".cargo/config.toml"}, writes: []string{"add", "remove", "rm", "init", "fix", "fmt", "update"}},
		{names: []string{"docker", "podman", "buildah"}, reads: []string{"Dockerfile", "Containerfile", ".dockerignore", "docker-compose.y*ml", "compose.y*ml"}},
		{names: []string{"docker-compose"}, reads: []string{"docker-compose.y*ml", "compose.y*ml"}},
		{names: []string{"terraform", "tofu"}, reads: []string{"*.tf", "*.tfvars"}, writes: []string{"fmt"}},
		{names: []string{"terragrunt"}, reads: []string{"*.hcl", "*.tf"}},
		{names: []string{"ansible", "ansible-playbook"}, script: true, reads: []string{"ansible.cfg"}},
		{names: []string{"pytest", "py.test"}, script: true, reads: []string{"conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"}},
		{names: []string{"tox", "nox"}, reads: []string{"tox.ini", "noxfile.py", "pyproject.toml", "setup.cfg"}},
		{names: []string{"pip"}, reads: []string{"setup.py", "pyproject.toml", "setup.cfg"}},
		{names: []string{"rake", "bundle"}, reads: []string{"Rakefile", "rakefile", "Gemfile"}, writes: []string{"add", "remove", "init"}},
		{names: []string{"gradle", "gradlew"}, reads: []string{"build.gradle*", "settings.gradle*", "gradle.properties"}},
		{names: []string{"mvn", "mvnw"}, reads: []string{"pom.xml"}},
		{names: []string{"cmake", "ctest"}, reads: []string{"CMakeLists.txt", "CMakePresets.json"}},
		{names: []string{"meson"}, reads: []string{"meson.build"}},
		{names: []string{"ninja"}, reads: []string{"build.ninja"}},
		{names: []string{"helm"}, reads: []string{"Chart.yaml", "values.yaml"}},
	}
}

// toolOf finds a program in the table, whatever its directory and version.
func toolOf(program string) (tool, bool) {
	name := path.Base(program)
	bare := strings.TrimRight(name, "0123456789.")
	for _, t := range tools() {
		if slices.Contains(t.names, name) || bare != "" && slices.Contains(t.names, bare) {
			return t, true
		}
	}
	return tool{}, false
}

// readers are the options of whatever program that name a file it reads for
// what to do, not one it works on.
func readers() []string {
	return []string{"-f", "-c", "-r", "--file", "--config", "--conf", "--script", "--rcfile", "--init-file", "--env-file", "--project", "--manifest-path", "--makefile", "--values", "--var-file", "--require", "--import", "--requirement", "--playbook"}
}

// movers work on all that they name and run none of it: -f and -c mean other
// things to them.
func movers() []string {
	return []string{
		"rm", "mv", "cp", "ln", "touch", "tee", "truncate", "dd", "chmod", "chown", "install", "mkdir", "rmdir", "shred", "split", "rsync",
		"tar", "gzip", "gunzip", "zip", "unzip", "xz", "bzip2", "zstd", "sed", "sort", "patch", "ed", "vi", "vim", "nano", "cut", "wc", "head", "tail", "grep", "cat",
	}
}
