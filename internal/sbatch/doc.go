// Package sbatch turns a batch script of Slurm into a job file, which package jobfile reads.
//
// It decides what an option of sbatch means on a mesh, whether it stands in the script or on the
// command line, which variables a script finds, and how the files are called that its output goes
// to. What a mesh has nothing for is refused by name and line. It opens no file.
//
// # Map of the files
//
//	options.go  the options of sbatch, in a script and beside it
//	values.go   times, sizes, arrays and dependencies as Slurm writes them
//	names.go    names of files with %j and the like
//	fields.go   which option a field of the job file comes from
//	job.go      Batch: the job file that a script makes
package sbatch
