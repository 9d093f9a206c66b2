/** The used part of postject, which has no types of its own. */
declare module 'postject' {
  /** Adds data as a note to an executable file, in place, and sets the fuse by which Node.js finds it. */
  export function inject(
    file: string,
    resource: string,
    data: Buffer,
    options: { readonly sentinelFuse: string },
  ): Promise<void>;
}
