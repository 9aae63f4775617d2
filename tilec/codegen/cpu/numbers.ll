; How the run time finds the function that computes the numbers of a model with symbols.

source_filename = "numbers.ll"
target triple = "$TRIPLE"

declare void @tilec_numbers(ptr, i64)

; Its address, as a function of tvm_ffi without arguments that returns an integer.
define i32 @__tvm_ffi_$NUMBERS_ENTRY(ptr %self, ptr %args, i32 %count, ptr %result) {
  store i32 1, ptr %result
  %value.p = getelementptr i8, ptr %result, i64 8
  store i64 ptrtoint (ptr @tilec_numbers to i64), ptr %value.p
  ret i32 0
}
