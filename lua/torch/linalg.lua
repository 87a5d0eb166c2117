-- Linear algebra: Torch7's argument forms of the LAPACK rows of the op table (tensors, flags -> results).
-- Each is a function of torch and a method; results given in front are filled, otherwise new ones are made.
local C = require 'relume.core'
local torch = C.torch
local op = C.op
local M = {}

-- Tensors in front, then the flags as {letter, ...} of what is left.
local function split(...)
   local n, at = select('#', ...), 0
   while at < n and torch.isTensor((select(at + 1, ...))) do at = at + 1 end
   return {unpack({...}, 1, at)}, {select(at + 1, ...)}
end

-- Flag among letters ('UL'): true for the first, false for the second; `default` when it is absent.
local function flag(name, value, letters, default)
   if value == nil then return default end
   local at = type(value) == 'string' and #value == 1 and letters:find(value:upper(), 1, true)
   if not at then
      error(('[%s] flag; got %s, need \'%s\' or \'%s\''):format(name, tostring(value), letters:sub(1, 1), letters:sub(2, 2)), 4)
   end
   return at == 1
end

local function matrix(b)
   return b:dim() == 1 and b:view(-1, 1) or b
end

-- Defines torch.name and x:name. `run(inputs, flags)` returns nout tensors.
local function define(name, nin, nout, run)
   M[name] = function(...)
      local tensors, flags = split(...)
      local given = #tensors == nin + nout and nout or 0
      if #tensors - given ~= nin then
         error(('[%s] tensors; got %d, need %d, or %d with results in front'):format(name, #tensors, nin, nin + nout), 2)
      end
      local results = {run({unpack(tensors, given + 1)}, flags)}
      for i = 1, given do results[i] = tensors[i]:resize(results[i]:size()):copy(results[i]) end
      return unpack(results, 1, nout)
   end
end

--- gesv([x, lu,] b, a): solution of a x = b and the factors of a. b (n, k) or (n), a (n, n).
define('gesv', 2, 2, function(t)
   local x, lu = op.gesv(matrix(t[1]:contiguous()), t[2])
   return x, lu:detach()
end)

--- gels([x, qr,] b, a): least squares solution of a x = b for a (m, n) of full rank, b (m, k).
define('gels', 2, 2, function(t) return op.gels(matrix(t[1]:contiguous()), t[2]) end)

--- trtrs([x, a,] b, a [, 'U' or 'L' [, 'N' or 'T' [, 'N' or 'U']]]): solution for a triangular a, and a.
define('trtrs', 2, 2, function(t, f)
   local upper, plain, ordinary = flag('trtrs', f[1], 'UL', true), flag('trtrs', f[2], 'NT', true), flag('trtrs', f[3], 'NU', true)
   return op.trtrs(matrix(t[1]:contiguous()), t[2], upper, not plain, not ordinary), t[2]:clone()
end)

--- symeig([e, v,] a [, 'N' or 'V' [, 'U' or 'L']]): eigenvalues (ascending) of a symmetric matrix; with 'V' its eigenvectors too.
define('symeig', 1, 2, function(t, f)
   local values = flag('symeig', f[1], 'NV', true)
   return op.symeig(t[1], not values or t[1]:requiresGrad(), flag('symeig', f[2], 'UL', true))
end)

--- eig([e, v,] a [, 'N' or 'V']): eigenvalues (n, 2) as real and imaginary parts; with 'V' the right eigenvectors.
define('eig', 1, 2, function(t, f) return op.eig(t[1], not flag('eig', f[1], 'NV', true)) end)

--- svd([u, s, v,] a [, 'S' or 'A']): a = u diag(s) v^T; 'A' makes u and v square.
define('svd', 1, 3, function(t, f)
   local some = flag('svd', f[1], 'SA', true)
   if not some and t[1]:requiresGrad() and t[1]:size(1) ~= t[1]:size(2) then
      error("[svd] the columns that 'A' adds are not differentiable; got 'A', need 'S'", 3)
   end
   return op.svd(t[1], some)
end)

--- qr([q, r,] a): q (m, k) with orthonormal columns, r (k, n) upper triangular, k the smaller size.
define('qr', 1, 2, function(t) return op.qr(t[1]) end)

--- geqrf([r, tau,] a): QR factorisation as LAPACK keeps it.
define('geqrf', 1, 2, function(t) return op.geqrf(t[1]) end)

--- orgqr([q,] a, tau): Q of geqrf's result.
define('orgqr', 2, 1, function(t) return op.orgqr(t[1], t[2]) end)

--- ormqr([res,] a, tau, c [, 'L' or 'R' [, 'N' or 'T']]): Q c, c Q, Q^T c or c Q^T.
define('ormqr', 3, 1, function(t, f)
   return op.ormqr(t[1], t[2], t[3], flag('ormqr', f[1], 'LR', true), not flag('ormqr', f[2], 'NT', true))
end)

--- inverse([res,] a): inverse of a square matrix.
define('inverse', 1, 1, function(t) return op.inverse(t[1]) end)

--- potrf([res,] a [, 'U' or 'L']): Cholesky factor of a positive definite matrix.
define('potrf', 1, 1, function(t, f) return op.potrf(t[1], flag('potrf', f[1], 'UL', true)) end)

--- potri([res,] f [, 'U' or 'L']): inverse from the Cholesky factor.
define('potri', 1, 1, function(t, f) return op.potri(t[1], flag('potri', f[1], 'UL', true)) end)

--- potrs([res,] b, f [, 'U' or 'L']): solution from the Cholesky factor.
define('potrs', 2, 1, function(t, f) return op.potrs(matrix(t[1]:contiguous()), t[2], flag('potrs', f[1], 'UL', true)) end)

--- pstrf([res, piv,] a [, 'U' or 'L' [, tol]]): Cholesky factor with pivots (Int, from 1) of a semidefinite matrix.
define('pstrf', 1, 2, function(t, f)
   if type(f[1]) == 'number' then table.insert(f, 1, 'U') end
   return op.pstrf(t[1], flag('pstrf', f[1], 'UL', true), f[2] or -1)
end)

for name, f in pairs(M) do rawset(torch, name, f) end

return M
