package view

// Configuration tells where a running agent's settings come from, and the result of
// reading them again.
type Configuration struct {
	File     string    `json:"file"`               // that it reads; there may be none
	Since    Time      `json:"since"`              // since when these settings are in force
	Problem  string    `json:"problem,omitempty"`  // why the file, read again, is not in force
	Changed  []string  `json:"changed,omitempty"`  // settings that the last reading put in force
	Restart  []string  `json:"restart,omitempty"`  // settings that count after a restart
	Settings []Setting `json:"settings,omitempty"` // all of them, if asked for
}

// PageLink opens an agent's page in a browser, once.
type PageLink struct {
	URL         string `json:"url"` // on loopback; its fragment has the code
	ExpiresInMS int64  `json:"expires_in_ms"`
}

// Setting is one setting and where its value comes from.
type Setting struct {
	Name      string `json:"name"`                // dotted: "ceilings.memory"
	Value     string `json:"value"`               // in the units that people write
	From      string `json:"from"`                // default, preset, file, environment or flag
	Place     string `json:"place"`               // that, for people: "preset wan", "file, line 3"
	Line      int    `json:"line,omitempty"`      // in the file, if it is set there
	Default   string `json:"default"`             // what it would be if nobody chose it
	Running   string `json:"running,omitempty"`   // in force until a restart, if not value
	Repeats   bool   `json:"repeats,omitempty"`   // the line in the file only repeats the default
	Preset    string `json:"preset,omitempty"`    // what the preset says, if overruled
	Inherited bool   `json:"inherited,omitempty"` // by a mere default of preset lan
	// a running agent takes a new value without a restart
	Live       bool `json:"live,omitempty"`
	Documented bool `json:"documented,omitempty"` // one of the settings that are often needed
}
