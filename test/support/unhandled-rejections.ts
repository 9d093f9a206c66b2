/**
 * Makes a promise that is rejected and never awaited fail the test that runs then. Mocha's command line does this;
 * Mocha's API only emits the rejection again, which nothing listens for, so that such a test would pass.
 */
export function failOnUnhandledRejections(): void {
  process.on('unhandledRejection', (reason) => {
    throw reason;
  });
}
