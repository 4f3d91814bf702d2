package pane

import "swarmdeck/ui/screen"

// openProfile is that of agents which nothing holds back.
const openProfile = "open"

// OpenMeans says what it is to be open.
const OpenMeans = "reaches all that the engine's user reaches, its keys and the network among it"

// Profile is how much of the machine an agent reaches, in a word; nobody is to
// overlook one that reaches all.
func Profile(profile string) (word string, role screen.Role) {
	if profile == openProfile {
		return "OPEN", screen.Danger
	}
	return profile, screen.Dim
}
