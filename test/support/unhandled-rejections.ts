/**
 * Makes a promise that is rejected and never awaited fail the running test. Mocha's command line does this; Mocha's API
 * only emits the rejection again without a listener, so that such a test would pass.
 */
export function failOnUnhandledRejections(): void {
  process.on('unhandledRejection', (reason) => {
    throw reason;
  });
}
