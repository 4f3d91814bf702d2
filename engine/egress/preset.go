package egress

import (
	"slices"
	"strings"
)

// Registries is the preset of well-known package registries and git hosts.
// Nothing of it is allowed unless a person says so: to push to a git host or
// to publish to a registry is a way out for whatever an agent has read.
const Registries = "registries"

// Presets are the names that stand for several hosts in a rule.
func Presets() []string { return []string{Registries} }

// presetHosts are the hosts of a preset, nil for any other name.
func presetHosts(name string) []string {
	if name != Registries {
		return nil
	}
	hosts := strings.Fields(`
		registry.npmjs.org registry.yarnpkg.com
		pypi.org files.pythonhosted.org
		proxy.golang.org sum.golang.org
		index.crates.io static.crates.io crates.io
		rubygems.org index.rubygems.org
		repo.maven.apache.org repo1.maven.org plugins.gradle.org
		api.nuget.org packagist.org repo.packagist.org
		deb.debian.org security.debian.org archive.ubuntu.com security.ubuntu.com dl-cdn.alpinelinux.org
		github.com codeload.github.com raw.githubusercontent.com objects.githubusercontent.com release-assets.githubusercontent.com
		gitlab.com bitbucket.org codeberg.org`)
	slices.Sort(hosts)
	return hosts
}
