-- Linear algebra: factors multiply to what they came from, in Torch7's argument forms, Float and Double.
require 'helper'

local function random(n, m, type)
   torch.manualSeed(n * 31 + m)
   return torch.randn(n, m):type(type)
end

-- Symmetric, positive definite.
local function definite(n, type)
   local a = random(n, n, type)
   return a * a:t() + torch.eye(n):type(type)
end

local function message(f, ...)
   local ok, err = pcall(f, ...)
   assert.is_false(ok)
   return tostring(err)
end

for type, tol in pairs { ['torch.DoubleTensor'] = 1e-10, ['torch.FloatTensor'] = 1e-4 } do
   local function eye(n) return torch.eye(n):type(type) end

   describe('linear algebra on ' .. type, function()
      it('inverts', function()
         local a = random(5, 5, type)
         assert.near(a * torch.inverse(a), eye(5), tol)
         local res = a.new()
         assert.equal(res, torch.inverse(res, a:t()))
         assert.near(res * a:t(), eye(5), tol)
         assert.near(a:inverse() * a, eye(5), tol)
      end)

      it('solves: gesv, gels, trtrs, potrs', function()
         local a, b = random(4, 4, type), random(4, 2, type)
         local x, lu = torch.gesv(b, a)
         assert.near(a * x, b, tol)
         assert.same({ 4, 4 }, lu:size():totable())
         local rx, rlu = a.new(), a.new()
         torch.gesv(rx, rlu, b, a)
         assert.near(rx, x, 0)
         assert.near(rlu, lu, 0)
         assert.near(a * b:gesv(a), b, tol)
         assert.near(a * torch.gesv(b:select(2, 1), a), b:narrow(2, 1, 1), tol)

         local tall, wide, c = random(6, 3, type), random(3, 6, type), random(6, 2, type)
         assert.near(tall:t() * (tall * torch.gels(c, tall)), tall:t() * c, tol * 10)
         local d = random(3, 2, type)
         local least = torch.gels(d, wide)
         assert.near(wide * least, d, tol)
         assert.same({ 6, 2 }, least:size():totable())
         assert.near(torch.gels(a.new(), a.new(), d, wide), least, 0)

         local s = definite(4, type)
         local u, l = torch.potrf(s), torch.potrf(s, 'L')
         assert.near(u:t() * u, s, tol * 10)
         assert.near(l * l:t(), s, tol * 10)
         assert.near(u * torch.trtrs(b, u), b, tol)
         assert.near(u:t() * torch.trtrs(b, u, 'U', 'T'), b, tol)
         assert.near(l * torch.trtrs(b, l, 'L'), b, tol)
         local unit = torch.tril(l, -1) + eye(4)
         assert.near(unit * torch.trtrs(b, l, 'L', 'N', 'U'), b, tol)
         assert.near(s * torch.potrs(b, u), b, tol * 10)
         assert.near(s * torch.potrs(a.new(), b, l, 'L'), b, tol * 10)
         assert.near(s * torch.potri(u), eye(4), tol * 10)
         assert.near(s * l:potri('L'), eye(4), tol * 10)
      end)

      it('pstrf takes pivots', function()
         local half = random(5, 3, type)
         local s = half * half:t()
         local u, piv = torch.pstrf(s)
         assert.equal('torch.IntTensor', torch.type(piv))
         local order = piv:long()
         local permuted = s:index(1, order):index(2, order)
         assert.near(u:t() * u, permuted, tol * 100)
         local ru = s.new()
         local l = torch.pstrf(ru, torch.IntTensor(), s, 'L')
         assert.equal(ru, l)
         assert.near(l * l:t(), permuted, tol * 100)
      end)

      it('qr and what it is made of', function()
         for _, size in ipairs { { 5, 3 }, { 3, 5 }, { 4, 4 } } do
            local a, k = random(size[1], size[2], type), math.min(size[1], size[2])
            local q, r = torch.qr(a)
            assert.near(q * r, a, tol)
            assert.near(q:t() * q, eye(k), tol)
            assert.near(torch.triu(r), r, 0)
            local f, tau = torch.geqrf(a)
            assert.near(torch.triu(f):narrow(1, 1, k), r, tol)
            local whole = torch.orgqr(f, tau)
            assert.near(whole, q, tol)
            local c = random(size[1], 2, type)
            local full = torch.ormqr(f, tau, torch.eye(size[1]):type(type))
            assert.near(torch.ormqr(f, tau, c), full * c, tol)
            assert.near(torch.ormqr(f, tau, c, 'L', 'T'), full:t() * c, tol)
            assert.near(torch.ormqr(a.new(), f, tau, c:t(), 'R', 'T'), c:t() * full:t(), tol)
            local rq, rr = a.new(), a.new()
            torch.qr(rq, rr, a)
            assert.near(rq * rr, a, tol)
         end
      end)

      it('symeig', function()
         local s = definite(5, type)
         local e, v = torch.symeig(s, 'V')
         assert.near(v * torch.diag(e) * v:t(), s, tol * 10)
         assert.near((torch.symeig(s)), e, tol * 10)
         local el, vl = torch.symeig(torch.tril(s), 'V', 'L')
         assert.near(el, e, tol * 10)
         assert.near(vl * torch.diag(el) * vl:t(), s, tol * 10)
         local re, rv = s.new(), s.new()
         torch.symeig(re, rv, s, 'V')
         assert.near(rv * torch.diag(re) * rv:t(), s, tol * 10)
      end)

      it('eig', function()
         local a = torch.DoubleTensor { { 1, 2, 0 }, { -2, 1, 0 }, { 1, 1, 3 } }:type(type)
         local e, v = torch.eig(a, 'V')
         assert.same({ 3, 2 }, e:size():totable())
         local pairsSeen = 0
         for i = 1, 3 do
            if e[i][2] == 0 then
               assert.near(a * v:select(2, i), v:select(2, i) * e[i][1], tol * 10)
            elseif e[i][2] > 0 then
               local re, im = v:select(2, i), v:select(2, i + 1)
               assert.near(a * re, re * e[i][1] - im * e[i][2], tol * 10)
               assert.near(a * im, re * e[i][2] + im * e[i][1], tol * 10)
               pairsSeen = pairsSeen + 1
            end
         end
         assert.equal(1, pairsSeen)
         local values, none = torch.eig(a)
         assert.near(values, e, tol * 10)
         assert.equal(0, none:nElement())
      end)

      it('svd', function()
         for _, size in ipairs { { 5, 3 }, { 3, 5 }, { 4, 4 } } do
            local a, k = random(size[1], size[2], type), math.min(size[1], size[2])
            local u, s, v = torch.svd(a)
            assert.near(u * torch.diag(s) * v:t(), a, tol * 10)
            assert.same({ size[2], k }, v:size():totable())
            local U, S, V = torch.svd(a, 'A')
            assert.near(U:t() * U, eye(size[1]), tol * 10)
            assert.near(V:t() * V, eye(size[2]), tol * 10)
            assert.near(S, s, tol * 10)
            local ru, rs, rv = a.new(), a.new(), a.new()
            torch.svd(ru, rs, rv, a:t())
            assert.near(ru * torch.diag(rs) * rv:t(), a:t(), tol * 10)
         end
      end)
   end)
end

describe('linear algebra', function()
   it('says what is wrong', function()
      local singular, tall = torch.ones(3, 3), torch.randn(4, 3)
      assert.truthy(message(torch.inverse, singular):find('[inverse] the matrix is singular', 1, true))
      assert.truthy(message(torch.gesv, torch.ones(3, 1), singular):find('[gesv] the matrix is singular', 1, true))
      assert.truthy(message(torch.trtrs, torch.ones(2, 1), torch.zeros(2, 2)):find('[trtrs] the matrix is singular', 1, true))
      assert.truthy(message(torch.potrf, -torch.eye(3)):find('not positive definite: its leading minor of order 1', 1, true))
      assert.truthy(message(torch.inverse, tall):find('got 4x3 Double, need a square matrix', 1, true))
      assert.truthy(message(torch.gesv, tall, singular):find('rows of the right-hand side', 1, true))
      assert.truthy(message(torch.svd, torch.ones(3)):find('need a matrix', 1, true))
      assert.truthy(message(torch.potrf, torch.eye(2), 'X'):find("[potrf] flag; got X, need 'U' or 'L'", 1, true))
      assert.truthy(message(torch.inverse, torch.LongTensor(2, 2):fill(1)):find('[inverse]', 1, true))
      assert.truthy(message(torch.eig, torch.Tensor(2, 2):fill(0 / 0)):find('need finite numbers', 1, true))
      assert.truthy(message(torch.orgqr, tall, torch.ones(9)):find('[orgqr] tau', 1, true))
      assert.truthy(message(torch.gesv, singular):find('[gesv] tensors; got 1, need 2', 1, true))
   end)

   it('takes empty matrices', function()
      assert.equal(0, torch.inverse(torch.Tensor(0, 0)):nElement())
      local u, s, v = torch.svd(torch.Tensor(0, 3))
      assert.same({ 0, 0, 0 }, { u:nElement(), s:nElement(), v:nElement() })
      assert.same({ 3, 2 }, torch.gels(torch.Tensor(0, 2), torch.Tensor(0, 3)):size():totable())
   end)

   it('goes through the tape and is compiled', function()
      local a = definite(3, 'torch.DoubleTensor'):requiresGrad(true)
      torch.symeig(a):sum():backward() -- the trace
      assert.near(a:grad(), torch.eye(3), 1e-9)
      local function f(x) return (torch.inverse(x) * torch.potrf(x)):sum() end
      local x = definite(4, 'torch.DoubleTensor')
      assert.near(torch.compile(f)(x), f(x), 1e-9)
   end)
end)
