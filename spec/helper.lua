-- Spec helper: paths of the built tree, the library loaded once, the project's assertions.
-- busted runs it once before the spec files; modules required here survive busted's per-file insulation.
local build = os.getenv 'BUILD' or 'build'
package.path = ('%s/tree/?.lua;%s/tree/?/init.lua;spec/?.lua;./?.lua;%s'):format(build, build, package.path)
package.cpath = ('%s/?.so;%s'):format(build, package.cpath)

require 'ffi'
require 'torch'
require 'nn'
require 'optim'
require 'xlua'
-- Parts of torch that load at first use: a second copy, made in a later spec file, would not share the first one's state.
for _, part in ipairs { 'serialize', 'File', 'random', 'math', 'conv', 'linalg', 'Timer', 'CmdLine', 'Tester', 'TestSuite' } do require('torch.' .. part) end
require 'relume.jit'
require 'support.assert_compiles'
require 'support.assert_tensor'
