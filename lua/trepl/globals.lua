-- Globals that programs find under `th`: the packages of the original, and Penlight's modules on demand where Penlight is installed.
require 'torch'
require 'paths'
require 'sys'
require 'xlua'
require 'dok'

-- Penlight gives _G an __index that loads path, stringx, tablex, List ... when they are first named.
pcall(require, 'pl')

-- Then strings format by %: '%d of %d' % {1, 2}.
local text = rawget(_G, 'text') or pcall(require, 'pl.text') and require 'pl.text'
if text then text.format_operator() end
