cwlVersion: v1.2
class: CommandLineTool
baseCommand: [sh, -c, 'echo $(($0 * $0))']
inputs: {number: {type: int, inputBinding: {position: 1}}}
outputs: {square: {type: stdout}}
stdout: square.txt
requirements: {ResourceRequirement: {coresMin: 1, ramMin: 256, outdirMin: 16, tmpdirMin: 16}}
