"""From a request to a judged session: the way that every verb takes."""
