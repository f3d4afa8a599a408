cwlVersion: v1.2
class: CommandLineTool
baseCommand: [awk, '{s += $1} END {print s}']
inputs: {squares: {type: 'File[]', inputBinding: {position: 1}}}
outputs: {sum: {type: stdout}}
stdout: sum.txt
requirements: {ResourceRequirement: {coresMin: 1, ramMin: 256, outdirMin: 16, tmpdirMin: 16}}
