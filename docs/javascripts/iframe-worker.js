// Search on pages that are opened from disk. The theme searches in a web worker, and browsers allow
// a page from disk none; a hidden frame does the same work. Served pages keep their workers.
"use strict"
;(() => {
  if (location.protocol !== "file:") return

  // Run before the worker's own script: a frame hands messages to its page, and loads scripts one
  // after another.
  const prelude = `
    postMessage = parent.postMessage.bind(parent)
    importScripts = (...sources) => sources.reduce((before, source) => before.then(() =>
      new Promise((resolve, reject) => {
        const script = document.createElement("script")
        script.src = source
        script.onload = resolve
        script.onerror = reject
        document.body.appendChild(script)
      })), Promise.resolve())
  `

  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "search"
      document.body.appendChild(this.frame)
      this.receive = event => {
        if (event.source !== this.frame.contentWindow) return
        const message = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(message)
        if (this.onmessage) this.onmessage(message)
      }
      addEventListener("message", this.receive)
      const inside = this.frame.contentWindow
      inside.document.open()
      inside.document.write(
        `<html><body><script>${prelude}</scr` + `ipt><script src="${url}"></scr` + `ipt></body></html>`
      )
      inside.document.close()
      this.ready = new Promise(resolve => { inside.onload = resolve })
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(
        new MessageEvent("message", { data: structuredClone(data) })
      ))
    }

    terminate() {
      removeEventListener("message", this.receive)
      this.frame.remove()
    }
  }
})()
