-- Public names of the original Torch7, read off the running original: names of a table or class, apart from metamethods.
return {
   torch = [[
      Allocator ByteStorage ByteTensor CharStorage CharTensor CmdLine DiskFile DoubleStorage DoubleTensor File FloatStorage FloatTensor
      Generator HalfStorage HalfTensor IntStorage IntTensor LongStorage LongTensor MemoryFile PipeFile ShortStorage ShortTensor Storage
      Tensor TestSuite Tester Timer _gen _heaptracking abs acos add addbmm addcdiv addcmul addmm addmv addr all any asin atan atan2 baddbmm
      bernoulli bhistc bitand bitor bitxor bmm cat cauchy cbitand cbitor cbitxor cdata cdiv ceil cfmod chunk cinv clamp class clshift cmax
      cmin cmod cmul conv2 conv3 cos cosh cpow cremainder cross crshift csub cumprod cumsum data deserialize deserializeFromStorage diag
      dist div dot eig eq equal exp expand expandAs exponential eye factory fill floor fmod frac gather ge gels geometric geqrf ger gesv
      getRNGState getconstructortable getdefaulttensortype getenv getmetatable getnumcores getnumthreads gt histc include initialSeed
      inverse isStorage isTensor isTypeOf isatty isequal kthvalue le lerp linspace load loadobj log log1p logNormal logspace lshift lt
      manualSeed match max mean median metatype min mm mod mode mul multinomial multinomialAlias multinomialAliasSetup
      multinomialAliasSetup_ multinomialAlias_ mv ne neg newmetatable nonzero norm normal numel ones orgqr ormqr packageLuaPath permute
      pointer potrf potri potrs pow prod pstrf pushudata qr rand randn random randperm range remainder renorm repeatTensor reshape round
      rshift rsqrt save saveobj scatter seed serialize serializeToStorage setRNGState setdefaulttensortype setenv setheaptracking
      setmetatable setnumthreads sigmoid sign sin sinh sort split sqrt squeeze std sum svd symeig tan tanh test tic toc topk totable trace
      tril triu trtrs trunc type typename uniform updateerrorhandlers updatethreadlocals var version view viewAs xcorr2 xcorr3 zero zeros ]],
   Tensor = [[
      add addbmm addcdiv addcmul addmm addmv addr apply baddbmm bernoulli bitand bitor bitxor bmm byte cat cbitand cbitor cbitxor cdata
      cdiv cfmod char chunk clamp clone clshift cmax cmin cmod cmul contiguous conv2 conv3 copy cpow cremainder cross crshift csub cumprod
      cumsum data diag dim div dot double elementSize eq equal expand expandAs eye fill float fmod free gather ge geometric ger gt half
      index indexAdd indexCopy indexFill int isContiguous isSameSizeAs isSetTo isSize kthvalue le long lshift lt map map2 maskedCopy
      maskedFill maskedSelect match max median min mm mod mode mul mv nDimension nElement narrow ne new nonzero numel ones permute prod
      random randperm range read real remainder repeatTensor reshape resize resizeAs retain rshift scatter select set short sign size sort
      split squeeze storage storageOffset stride sub sum t topk torch totable trace transpose tril triu type typeAs unfold view viewAs
      write xcorr2 xcorr3 zero zeros ]],
   ByteTensor = [[
      all any ]],
   CharTensor = [[
      ]],
   ShortTensor = [[
      ]],
   IntTensor = [[
      abs ]],
   LongTensor = [[
      abs ]],
   FloatTensor = [[
      abs acos asin atan atan2 bhistc cauchy ceil cinv cos cosh dist exp exponential floor frac histc lerp linspace log log1p logNormal
      logspace mean multinomial multinomialAliasSetup_ multinomialAlias_ neg norm normal pow rand randn renorm round rsqrt sigmoid sin sinh
      sqrt std tan tanh trunc uniform var ]],
   DoubleTensor = [[
      abs acos asin atan atan2 bhistc cauchy ceil cinv cos cosh dist exp exponential floor frac histc isTensor lerp linspace log log1p
      logNormal logspace mean multinomial multinomialAliasSetup_ multinomialAlias_ neg norm normal pow rand randn renorm round rsqrt
      sigmoid sin sinh sqrt std tan tanh trunc uniform var ]],
   HalfTensor = [[
      abs add byte cdata char chunk clone contiguous copy data dim double elementSize expand expandAs fill float free half int isContiguous
      isSameSizeAs isSetTo isSize long max mean nDimension nElement narrow new permute read real repeatTensor reshape resize resizeAs
      retain select set short size split storage storageOffset stride sub t totable transpose type typeAs unfold view viewAs write ]],
   Storage = [[
      cdata copy data elementSize fill free new read resize retain size totable write ]],
   ByteStorage = [[
      cdata copy data elementSize fill free new read resize retain size string totable write ]],
   DiskFile = [[
      ascii autoSpacing bigEndianEncoding binary clearError close hasError isAutoSpacing isBigEndianCPU isBinary isLittleEndianCPU isQuiet
      isReadable isReferenced isWritable isWritableObject littleEndianEncoding longSize nativeEndianEncoding new noAutoSpacing noBuffer
      pedantic position quiet readBool readByte readChar readDouble readFloat readInt readLong readObject readShort readString referenced
      seek seekEnd synchronize writeBool writeByte writeChar writeDouble writeFloat writeInt writeLong writeObject writeShort writeString ]],
   MemoryFile = [[
      ascii autoSpacing binary clearError close hasError isAutoSpacing isBinary isQuiet isReadable isReferenced isWritable isWritableObject
      longSize new noAutoSpacing pedantic position quiet readBool readByte readChar readDouble readFloat readInt readLong readObject
      readShort readString referenced seek seekEnd storage synchronize writeBool writeByte writeChar writeDouble writeFloat writeInt
      writeLong writeObject writeShort writeString ]],
   PipeFile = [[
      ascii autoSpacing bigEndianEncoding binary clearError close hasError isAutoSpacing isBigEndianCPU isBinary isLittleEndianCPU isQuiet
      isReadable isReferenced isWritable isWritableObject littleEndianEncoding longSize nativeEndianEncoding new noAutoSpacing noBuffer
      pedantic position quiet readBool readByte readChar readDouble readFloat readInt readLong readObject readShort readString referenced
      seek seekEnd synchronize writeBool writeByte writeChar writeDouble writeFloat writeInt writeLong writeObject writeShort writeString ]],
   Generator = [[
      new read write ]],
   Timer = [[
      new reset resume stop time ]],
   CmdLine = [[
      addTime argument default error help log new option parse silent string text ]],
   Tester = [[
      _addDebugInfo _assertTableEqOrNeq _assertTensorEqOrNeq _assert_sub _eqOrNeq _failure _getTests _pcall _report _run _success _warning
      add assert assertError assertErrorMsg assertErrorObj assertErrorPattern assertGeneralEq assertGeneralNe assertNoError assertTableEq
      assertTableNe assertTensorEq assertTensorNe assertalmosteq asserteq assertge assertgt assertle assertlt assertne disable eq ne new
      run setEarlyAbort setRethrowErrors setSummaryOnly ]],
   Allocator = [[
      ]],
   paths = [[
      basename concat cwd dir dirname dirp dofile execdir extname filep files findprogram getregistryvalue home is_mac is_win iterdirs
      iterfiles mkdir require rmall rmdir thisfile tmpname uname ]],
   sys = [[
      COLORS OS clock concat dirname execute fexecute fpath isNaN la ll lla ls prefix sleep split tic toc uname usleep ]],
   xlua = [[
      OptionParser Profiler clear clearall envparams error formatTime installed log print progress require table2string trycatch unpack
      unpack_class usage usage_module who ]],
   tds = [[
      AtomicCounter C Hash Vec atomic_counter hash vec ]],
   threads = [[
      Condition Mutex Thread Threads safe ]],
   extensions = [[
      string.gfind string.split string.tosymbol table.prune table.splice table.unpack ]],
   globals = [[
      include paths sys torch torchtest_chunk torchtest_expand torchtest_isSameSizeAs torchtest_isSetTo torchtest_isSize
      torchtest_isStorage torchtest_isTensor torchtest_permute torchtest_repeatTensor torchtest_split torchtest_totable torchtest_view
      xerror xlua xprint xrequire ]],
}
