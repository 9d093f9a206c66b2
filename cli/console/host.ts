/** The address that the console listens on: of this machine only, since the page has no login. */
export const HOST = '127.0.0.1';
