-- Verifier: each rule has a graph that breaks it.
local C = require 'relume.core'

local function graphOf(lines, head)
   return C.graphParse(('graph%s {\n%s\n}'):format(head or '', table.concat(lines, '\n')))
end

describe('graphVerify', function()
   it('accepts a good graph', function()
      assert.is_true(graphOf { '%0 = input 0 : Float[2,3] of 6', '%1 = exp(%0) : Float[2,3]', '%2 = sum(%1) {dims=[1], keepdim=true} : Float[2,1]', 'output %2' }:verify())
   end)

   local bad = {
      { 'a wrong size', { '%0 = input 0 : Float[2,3] of 6', '%1 = exp(%0) : Float[3,2]' }, 'type is not what its inputs give' },
      { 'a wrong dtype', { '%0 = input 0 : Float[2] of 2', '%1 = gt(%0, %0) : Float[2]' }, 'type is not what its inputs give' },
      { 'too few inputs', { '%0 = input 0 : Float[2] of 2', '%1 = add(%0) : Float[2]' }, 'number of inputs' },
      { 'too many inputs', { '%0 = input 0 : Float[2] of 2', '%1 = exp(%0, %0) : Float[2]' }, 'number of inputs' },
      { 'a missing input', { '%0 = input 0 : Float[2] of 2', '%1 = add(%0, nil) : Float[2]' }, 'missing' },
      { 'shapes that do not broadcast', { '%0 = input 0 : Float[2] of 2', '%1 = input 1 : Float[3] of 3', '%2 = add(%0, %1) : Float[2]' }, '%2 = add' },
      { 'a view on another storage', { '%0 = input 0 : Float[2,3] of 6', '%1 = permute(%0) {perm=[1,0]} : Float[3,2] @1(1,3)' }, 'another storage' },
      { 'a view with wrong strides', { '%0 = input 0 : Float[2,3] of 6', '%1 = permute(%0) {perm=[1,0]} : Float[3,2] @0(2,1)' }, 'geometry' },
      { 'a window beyond its storage', { '%0 = input 0 : Float[2,3] @0+1 of 6' }, 'beyond its storage' },
      { 'a result on a taken storage', { '%0 = input 0 : Float[2] of 2', '%1 = exp(%0) : Float[2] @0' }, 'is taken' },
      { 'a write of another shape', { '%0 = input 0 : Float[2] of 2', '%1 = input 1 : Float[3] of 3', '%2 = write(%0, %1) : Float[2] @0' }, 'disagree' },
      { 'a write in a functional graph', { '%0 = input 0 : Float[2] of 2', '%1 = write(%0, %0) : Float[2] @0' }, 'functional', ' functional' },
      { 'missing projections', { '%0 = input 0 : Float[2] of 2', '%1 = sort(%0) {dim=0, descending=false} : Float[2]' }, 'projections' },
      { 'a composite in a primitive graph', { '%0 = input 0 : Float[2,3] of 6', '%1 = softmax(%0) {dim=1} : Float[2,3]' }, 'not a primitive', ' functional primitive' },
      { 'broadcasting in a primitive graph', { '%0 = input 0 : Float[2,3] of 6', '%1 = input 1 : Float[1,3] of 3', '%2 = add(%0, %1) : Float[2,3]' }, 'broadcasts',
         ' functional primitive' },
      { 'a window beyond its base', { '%0 = input 0 : Float[6] of 6', '%1 = input 1 : Float[3] of 3',
         '%2 = scatter_window(%0, %1) {sizes=[3], strides=[2], offset=2} : Float[6]' }, 'beyond the base' },
      { 'a value unlike its window', { '%0 = input 0 : Float[6] of 6', '%1 = input 1 : Float[3] of 3',
         '%2 = scatter_window(%0, %1) {sizes=[2], strides=[2], offset=0} : Float[6]' }, 'disagree' },
      { 'an update of no input', { '%0 = input 0 : Float[2] of 2', '%1 = exp(%0) : Float[2]', 'update %1 <- %0' }, 'no view of an input' },
      { 'an update of another type', { '%0 = input 0 : Float[2] of 2', '%1 = sum(%0) {dims=[0], keepdim=true} : Float[1]', 'update %0 <- %1' }, 'another type' },
   }
   for _, case in ipairs(bad) do
      it('rejects ' .. case[1], function()
         local g = graphOf(case[2], case[4])
         local ok, err = pcall(g.verify, g)
         assert.is_false(ok)
         assert.truthy(tostring(err):find(case[3], 1, true), tostring(err))
      end)
   end
end)
