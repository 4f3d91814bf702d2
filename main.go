// Command swarmdeck is a cockpit for swarms of agents: one binary, one engine
// per data file, and one command language behind every door.
package main

import (
	"os"

	"swarmdeck/app"
)

func main() { os.Exit(app.Run(os.Args)) }
