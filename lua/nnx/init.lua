-- nnx: the layers of the rock `nnx` that programs use, on the project's own (require 'nnx' -> classes in nn).
require 'nn'
local nnx = {}
package.loaded['nnx'] = nnx
rawset(_G, 'nnx', nnx)

require 'nnx.layers'
require 'nnx.resample'
require 'nnx.SpatialClassifier'
require 'nnx.SoftMaxTree'
require 'nnx.tables'

return nnx
