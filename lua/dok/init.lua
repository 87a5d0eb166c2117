-- dok: the part of Torch7's dok that programs call: unpacking of declared arguments, usage texts, errors (all of xlua).
local xlua = require 'xlua'
local sys = require 'sys'
local dok = {colors = sys.COLORS, inline = {}}
package.loaded['dok'] = dok
rawset(_G, 'dok', dok)

--- Unpacks named or ordered arguments; see xlua.unpack.
dok.unpack = xlua.unpack

--- Text that says how a function is called; see xlua.usage.
dok.usage = xlua.usage

--- Raises an error that names where it comes from: dok.error(message, domain).
function dok.error(message, domain)
   error((domain and '<' .. domain .. '> ' or '') .. message, 2)
end

--- Colours do not appear in these texts; kept because programs switch them.
function dok.usecolors() end
dok.dontusecolors = dok.usecolors

return dok
