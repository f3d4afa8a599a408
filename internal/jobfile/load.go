package jobfile

import "errors"

// Load parses a job file and resolves its files in the folder. The error has
// everything that is wrong, in the text and on the disk, by line.
func Load(data []byte, folder string, o Options) (*Plan, error) {
	file, parseErr := Parse(data, o)
	plan, err := file.Resolve(o.Name, folder)
	if parseErr == nil {
		return plan, err
	}
	var all, more Errors
	if !errors.As(parseErr, &all) || (err != nil && !errors.As(err, &more)) {
		return nil, errors.Join(parseErr, err)
	}
	return nil, append(all, more...).sorted(o.Name)
}

// IsTES reports whether a text is a task of GA4GH TES, which no job file is: it has executors.
func IsTES(data []byte) bool {
	root, broken := parseText(data)
	return broken == nil && valueOf(root, "executors") != nil
}
