package signed

// Template is the text of a job, for tests.
var Template = template
